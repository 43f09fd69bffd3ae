redis.call('SET', LIMITS, ARGV[1], 'NX')
return redis.call('GET', LIMITS)
