-- ARGV: id, delivery, count, progress. Gives whether there was such a delivery.
local due = redis.call('ZSCORE', LEASED, ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3])
if not due or tonumber(due) <= micros() then
    return 0
end
redis.call('HSET', SAVED, ARGV[1], ARGV[4])
return 1
