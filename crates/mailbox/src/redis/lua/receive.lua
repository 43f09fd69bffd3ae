-- ARGV: how many; how long out of sight; whether to wait; horizon; limits.
local max, visibility, waits, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
local now = micros()

-- How many come back at a time, of each kind: a script holds up everybody.
local BACK_MAX = 100

-- What a receipt has room for.
local COUNT_MAX = 1048575

local function due(key, pattern)
    local found = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, BACK_MAX)
    local list, members = {}, {}
    for i = 1, #found, 2 do
        local id, count = string.match(found[i], pattern)
        members[#members + 1] = found[i]
        list[#list + 1] = {at = tonumber(found[i + 1]), entry = id .. ':' .. count}
    end
    return list, members
end

local back, delayed = due(DELAYED, '^(%d+):(%d+)$')
local expired, leased = due(LEASED, '^(%d+):%d+:(%d+)$')
if #delayed + #leased > 0 then
    for _, one in ipairs(expired) do
        back[#back + 1] = one
    end
    table.sort(back, function(a, b) return a.at < b.at end)
    local entries = {}
    for i, one in ipairs(back) do
        entries[i] = one.entry
    end
    redis.call('RPUSH', PENDING, unpack(entries))
    if #delayed > 0 then
        redis.call('ZREM', DELAYED, unpack(delayed))
    end
    if #leased > 0 then
        redis.call('ZREM', LEASED, unpack(leased))
    end
end

-- Everything is read before anything is changed: a script that fails has done what it has done.
local entries = redis.call('LRANGE', PENDING, 0, max - 1)
local given = {now, -1}
if #entries > 0 then
    local ids, counts = {}, {}
    for i, entry in ipairs(entries) do
        ids[i], counts[i] = string.match(entry, '^(%d+):(%d+)$')
    end
    local bodies = redis.call('HMGET', BODIES, unpack(ids))
    local saved = redis.call('EXISTS', SAVED) == 1 and redis.call('HMGET', SAVED, unpack(ids)) or {}
    local delivery = redis.call('INCRBY', ISSUED, #ids) - #ids
    local leases = {}
    for i, id in ipairs(ids) do
        -- Without a body it was never sent: the sender was told so.
        if bodies[i] then
            local count = math.min(counts[i] + 1, COUNT_MAX)
            delivery = delivery + 1
            leases[#leases + 1] = now + visibility
            leases[#leases + 1] = string.format('%s:%.0f:%.0f', id, delivery, count)
            for _, part in ipairs({tonumber(id), delivery, count, bodies[i], saved[i] or false}) do
                given[#given + 1] = part
            end
        end
    end
    redis.call('LTRIM', PENDING, #entries, -1)
    if #leases > 0 then
        redis.call('ZADD', LEASED, unpack(leases))
    end
    -- Others who wait may have what is left, or be there when what was given comes back.
    if visibility < horizon or redis.call('EXISTS', PENDING) == 1 then
        ring()
    end
    if #leases > 0 then
        return given
    end
end

local soonest
for _, key in ipairs({DELAYED, LEASED}) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if first[2] and (not soonest or tonumber(first[2]) < soonest) then
        soonest = tonumber(first[2])
    end
end
if soonest then
    given[2] = math.max(soonest - now, 0)
end
if waits then
    -- There is nothing to be woken for, but what comes after this.
    redis.call('DEL', BELL)
    redis.call('SET', LIMITS, ARGV[5], 'NX')
elseif soonest and soonest - now < horizon then
    -- Whoever leaves has somebody else be there in time.
    ring()
end
return given
