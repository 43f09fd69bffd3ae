-- ARGV: how; how long; horizon; and id, delivery and count of each. Gives how many there were to settle.
local how, span, horizon = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now, settled = micros(), 0
for i = 4, #ARGV, 3 do
    local id, count = ARGV[i], tonumber(ARGV[i + 2])
    local member = string.format('%s:%s:%.0f', id, ARGV[i + 1], count)
    local due = redis.call('ZSCORE', LEASED, member)
    if due and tonumber(due) > now then
        settled = settled + 1
        if how == 'extend' then
            redis.call('ZADD', LEASED, 'GT', now + span, member)
        else
            redis.call('ZREM', LEASED, member)
        end
        if how == 'ack' then
            redis.call('HDEL', BODIES, id)
            redis.call('HDEL', SAVED, id)
        elseif how == 'release' then
            redis.call('LPUSH', PENDING, string.format('%s:%.0f', id, count - 1))
            ring()
        elseif how == 'nack' and span == 0 then
            redis.call('RPUSH', PENDING, string.format('%s:%.0f', id, count))
            ring()
        elseif how == 'nack' then
            redis.call('ZADD', DELAYED, now + span, string.format('%s:%.0f', id, count))
            if span < horizon then
                ring()
            end
        end
    end
end
return settled
