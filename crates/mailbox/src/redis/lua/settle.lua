-- ARGV: how; how long; horizon; and id, delivery and count of each. Gives for each whether there was such a delivery.
local how, span, horizon = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now, members = micros(), {}
for i = 4, #ARGV, 3 do
    members[#members + 1] = ARGV[i] .. ':' .. ARGV[i + 1] .. ':' .. ARGV[i + 2]
end
local dues, settled, seen = redis.call('ZMSCORE', LEASED, unpack(members)), {}, {}
local done, ids = {}, {}
if how ~= 'ack' then
    begin()
end
for i, member in ipairs(members) do
    local id, count = ARGV[3 * i + 1], ARGV[3 * i + 3]
    local is_there = dues[i] and tonumber(dues[i]) > now and not seen[member]
    settled[i] = is_there and 1 or 0
    if is_there and how == 'extend' then
        redis.call('ZADD', LEASED, 'GT', text(now + span), member)
    elseif is_there then
        seen[member] = true
        done[#done + 1], ids[#ids + 1] = member, id
        if how == 'release' then
            redis.call('LPUSH', PENDING, id .. ':' .. text(count - 1))
        elseif how == 'nack' and span == 0 then
            redis.call('RPUSH', PENDING, id .. ':' .. count)
        elseif how == 'nack' then
            redis.call('ZADD', DELAYED, text(now + span), id .. ':' .. count)
        end
    end
end
if #done > 0 then
    redis.call('ZREM', LEASED, unpack(done))
    if how == 'ack' then
        redis.call('HDEL', BODIES, unpack(ids))
        if redis.call('EXISTS', SAVED) == 1 then
            redis.call('HDEL', SAVED, unpack(ids))
        end
    elseif how == 'release' or span < horizon then
        ring()
    end
end
return settled
