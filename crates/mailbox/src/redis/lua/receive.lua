-- ARGV: how long out of sight; horizon; limits; and for each receiver how many it wants, and whether it waits. Gives what
-- each gets, in order.
local visibility, horizon, limits = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local now, wanted = micros(), 0
for i = 4, #ARGV, 2 do
    wanted = wanted + tonumber(ARGV[i])
end

-- How many come back at a time, of each kind: a script holds up everybody.
local BACK_MAX = 100

-- What a count has room for.
local COUNT_MAX = 4294967295

-- What comes back, by its time and its number: that of its delivery, or its own where it was delayed.
local function due(key, pattern)
    local found = redis.call('ZRANGEBYSCORE', key, '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, BACK_MAX)
    local list, members = {}, {}
    for i = 1, #found, 2 do
        local id, number, count = string.match(found[i], pattern)
        members[#members + 1] = found[i]
        list[#list + 1] = {at = tonumber(found[i + 1]), number = tonumber(number), entry = id .. ':' .. count}
    end
    return list, members
end

local back, delayed = due(DELAYED, '^((%d+)):(%d+)$')
local expired, leased = due(LEASED, '^(%d+):(%d+):(%d+)$')
if #delayed + #leased > 0 then
    for _, one in ipairs(expired) do
        back[#back + 1] = one
    end
    -- A batch has one time for all, and comes back in its order.
    table.sort(back, function(a, b) return a.at < b.at or a.at == b.at and a.number < b.number end)
    local entries = {}
    for i, one in ipairs(back) do
        entries[i] = one.entry
    end
    begin()
    redis.call('RPUSH', PENDING, unpack(entries))
    if #delayed > 0 then
        redis.call('ZREM', DELAYED, unpack(delayed))
    end
    if #leased > 0 then
        redis.call('ZREM', LEASED, unpack(leased))
    end
end

-- Five values for each message that is given.
local messages, PARTS = {}, 5
-- Everything is read before anything is changed: a script that fails has done what it has done.
local entries = redis.call('LRANGE', PENDING, 0, wanted - 1)
if #entries > 0 then
    local ids, counts = {}, {}
    for i, entry in ipairs(entries) do
        ids[i], counts[i] = string.match(entry, '^(.+):(.+)$')
    end
    local bodies = redis.call('HMGET', BODIES, unpack(ids))
    local saved = redis.call('EXISTS', SAVED) == 1 and redis.call('HMGET', SAVED, unpack(ids)) or {}
    local delivery = math.max(tonumber(redis.call('GET', ISSUED) or 0), now)
    -- Numbers are written out as rarely as can be: it is what takes longest here.
    local leases, until_when = {}, text(now + visibility)
    for i, id in ipairs(ids) do
        -- Without a body it was never sent: the sender was told so.
        if bodies[i] then
            local count = counts[i] == '0' and '1' or text(math.min(counts[i] + 1, COUNT_MAX))
            delivery = delivery + 1
            local number, lease, at = text(delivery), #leases, #messages
            leases[lease + 1], leases[lease + 2] = until_when, id .. ':' .. number .. ':' .. count
            messages[at + 1], messages[at + 2], messages[at + 3] = id, number, count
            messages[at + 4], messages[at + 5] = bodies[i], saved[i] or false
        end
    end
    -- First what needs no room, as `begin` does.
    redis.call('LTRIM', PENDING, #entries, -1)
    redis.call('SET', ISSUED, text(delivery))
    if #leases > 0 then
        redis.call('ZADD', LEASED, unpack(leases))
    end
    if #leases > 0 then
        -- Others who wait may have what is left, or be there when the next comes back: whoever leaves with these is
        -- not, and may be the only one who was told.
        ring_for(now + horizon)
    end
end

-- When there is a next message; looked for once, if anybody has to know.
local soonest, is_known
local function next_due()
    if not is_known then
        is_known = true
        -- There still are some only if those before them were never sent.
        soonest = #entries > 0 and redis.call('EXISTS', PENDING) == 1 and now or nil
        for _, key in ipairs({DELAYED, LEASED}) do
            local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
            if first[2] and (not soonest or tonumber(first[2]) < soonest) then
                soonest = tonumber(first[2])
            end
        end
    end
    return soonest
end

local given, at = {}, 0
for i = 4, #ARGV, 2 do
    local theirs = {now, -1}
    local last = math.min(#messages, at + PARTS * tonumber(ARGV[i]))
    for value = at + 1, last do
        theirs[#theirs + 1] = messages[value]
    end
    if last == at then
        local back_at = next_due()
        if back_at then
            theirs[2] = math.max(back_at - now, 0)
        end
        if ARGV[i + 1] == '1' then
            -- There is nothing to be woken for, but what comes after this.
            redis.call('DEL', BELL)
            redis.call('SET', LIMITS, limits, 'NX')
        elseif back_at and back_at - now < horizon then
            -- Whoever leaves has somebody else be there in time.
            begin()
            ring()
        end
    end
    at = last
    given[#given + 1] = theirs
end
return given
