-- Where the messages of a mailbox are. All keys have the same hash tag, and so the same slot of a cluster.
local ISSUED = KEYS[1]   -- the last number that was given to a message or to a delivery, see below
local PENDING = KEYS[2]  -- a list of "id:count", the next first
local DELAYED = KEYS[3]  -- "id:count" by when the delay is over
local LEASED = KEYS[4]   -- "id:delivery:count" by when the time out of sight is over
local BODIES = KEYS[5]   -- id to "sent:length of the address:address" and the body
local SAVED = KEYS[6]    -- id to checkpoint
local BELL = KEYS[7]     -- a list of at most one entry, which receivers who wait take out: look again
local LIMITS = KEYS[8]   -- "capacity:largest body"; there once the mailbox was opened

-- A number is the time in microseconds at which it is given out, or more, where the last one was: so none is given out
-- again, whatever the server forgets. It stays below 2^53, up to which numbers are whole here, until the year 2255.
local function micros()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- A whole number, written out.
local function text(number)
    return string.format('%d', number)
end

-- Changes nothing. A server that is full refuses writes that may need room, but for those in a script that has begun with
-- one that needs none: otherwise nothing could be taken out of it any more.
local function begin()
    redis.call('PERSIST', PENDING)
end

-- Has one receiver who waits look again. What is wrong with the bell is for those to say who wait at it.
local function ring()
    if redis.call('EXISTS', BELL) == 0 then
        redis.pcall('RPUSH', BELL, '1')
    end
end

-- Has one receiver who waits look, if there is something to be received now or by `soon`.
local function ring_for(soon)
    if redis.call('EXISTS', PENDING) == 1 or redis.call('ZCOUNT', DELAYED, '-inf', text(soon)) > 0
        or redis.call('ZCOUNT', LEASED, '-inf', text(soon)) > 0 then
        ring()
    end
end
