-- ARGV: capacity, or nothing for that of the mailbox; delay; horizon; length of the address and address; body.
local capacity, delay, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not capacity then
    local limits = redis.call('GET', LIMITS)
    if not limits then
        return {'unknown', 0}
    end
    local most, largest = string.match(limits, '^(%d+):(%d+)$')
    if #ARGV[5] > tonumber(largest) then
        return {'large', tonumber(largest)}
    end
    capacity = tonumber(most)
end
if redis.call('HLEN', BODIES) >= capacity then
    return {'full', capacity}
end
local now = micros()
local sent = text(now)
local number, id = now, sent
local last = tonumber(redis.call('GETSET', ISSUED, sent) or 0)
if last >= now then
    number, id = last + 1, text(last + 1)
    redis.call('SET', ISSUED, id)
end
-- First to where it can be refused because of what else is there: a body that nothing leads to would stay for good.
if delay == 0 then
    redis.call('RPUSH', PENDING, id .. ':0')
else
    redis.call('ZADD', DELAYED, text(now + delay), id .. ':0')
end
redis.call('HSET', BODIES, id, sent .. ':' .. ARGV[4] .. ARGV[5])
if delay < horizon then
    ring()
end
return number
