import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../../src/config/redis-address.ts';

describe('parseRedisUrl', () => {
  it.each([
    ['redis://localhost', { kind: 'single', node: { host: 'localhost', port: 6379 }, db: 0, isTls: false }],
    ['redis://h:7000/', { kind: 'single', node: { host: 'h', port: 7000 }, db: 0, isTls: false }],
    [
      'rediss://me:p%40ss%3Aword@r.test:6380/2',
      {
        kind: 'single',
        username: 'me',
        password: 'p@ss:word',
        node: { host: 'r.test', port: 6380 },
        db: 2,
        isTls: true,
      },
    ],
    [
      'redis://:only-a-password@[::1]:1',
      { kind: 'single', password: 'only-a-password', node: { host: '::1', port: 1 }, db: 0, isTls: false },
    ],
    [
      'redis-sentinel://me:secret@a:1,b,[fe80::1]:3/queues?db=4&sentinelUsername=s&sentinelPassword=t%26u',
      {
        kind: 'sentinel',
        username: 'me',
        password: 'secret',
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26379 },
          { host: 'fe80::1', port: 3 },
        ],
        masterName: 'queues',
        db: 4,
        isTls: false,
        sentinelLogin: { username: 's', password: 't&u' },
      },
    ],
    [
      'rediss-sentinel://a/m',
      {
        kind: 'sentinel',
        nodes: [{ host: 'a', port: 26379 }],
        masterName: 'm',
        db: 0,
        isTls: true,
        sentinelLogin: {},
      },
    ],
    [
      'redis-cluster://:secret@a:7000,b:7001,c',
      {
        kind: 'cluster',
        password: 'secret',
        nodes: [
          { host: 'a', port: 7000 },
          { host: 'b', port: 7001 },
          { host: 'c', port: 6379 },
        ],
        isTls: false,
      },
    ],
    ['redis://h:65535/9999', { kind: 'single', node: { host: 'h', port: 65_535 }, db: 9999, isTls: false }],
    [
      'redis://only-a-user@h_1.test',
      { kind: 'single', username: 'only-a-user', node: { host: 'h_1.test', port: 6379 }, db: 0, isTls: false },
    ],
    [
      'redis://me:with:colon@h',
      { kind: 'single', username: 'me', password: 'with:colon', node: { host: 'h', port: 6379 }, db: 0, isTls: false },
    ],
    ['redis://:@h', { kind: 'single', node: { host: 'h', port: 6379 }, db: 0, isTls: false }],
    [
      'redis-cluster://a , b',
      {
        kind: 'cluster',
        nodes: [
          { host: 'a', port: 6379 },
          { host: 'b', port: 6379 },
        ],
        isTls: false,
      },
    ],
    [
      `redis-sentinel://a/${'m'.repeat(128)}`,
      {
        kind: 'sentinel',
        nodes: [{ host: 'a', port: 26379 }],
        masterName: 'm'.repeat(128),
        db: 0,
        isTls: false,
        sentinelLogin: {},
      },
    ],
    ['rediss-cluster://a/', { kind: 'cluster', nodes: [{ host: 'a', port: 6379 }], isTls: true }],
  ])('reads %s', (url, address) => {
    expect(parseRedisUrl(url)).toEqual(address);
  });

  it.each([
    ['', 'not one of'],
    ['localhost:6379', 'not one of'],
    ['http://:hunter2@h', 'not one of'],
    ['redis-single://hunter2', 'not one of'],
    ['redis://hunter2#fragment', 'not one of'],
    ['redis://a:p@hunter2@h', 'not one of'],
    ['redis://', 'host 1'],
    ['redis://h:99999', 'host 1'],
    ['redis://h:0', 'host 1'],
    ['redis://h:65536', 'host 1'],
    ['redis://h:', 'host 1'],
    ['redis://h:12hunter2', 'host 1'],
    ['redis://[::1', 'host 1'],
    ['redis://[hunter2]', 'host 1'],
    ['redis://[::1]hunter2', 'host 1'],
    [' redis://hunter2', 'not one of'],
    ['redis://h/12345', 'not a number'],
    ['redis://h/1hunter2', 'not a number'],
    ['redis://h/hunter2/1', 'not a number'],
    ['redis-sentinel://a/hunter2!', 'name of a master is missing'],
    [`redis-sentinel://a/${'m'.repeat(129)}`, 'name of a master is missing'],
    ['redis://hunter 2', 'host 1'],
    ['redis://hunter%zz@h', 'percent-encoding'],
    ['redis://h/hunter2', 'not a number'],
    ['redis://h?db=2', 'parameter 1'],
    ['redis://a,b', 'redis-sentinel://'],
    ['redis-cluster://a,,b', 'host 2'],
    ['redis-cluster://a/1', 'no numbered databases'],
    ['redis-cluster://a?hunter2', 'parameter 1'],
    ['redis-sentinel://a:1,b:2', 'name of a master is missing'],
    ['redis-sentinel://a/hunter 2', 'name of a master is missing'],
    ['redis-sentinel://a/m?db=hunter2', 'not a number'],
    ['redis-sentinel://a/m?db=1&db=2', 'parameter 2'],
    ['redis-sentinel://a/m?master=hunter2', 'parameter 1'],
  ])('rejects %j without repeating it', (url, reason) => {
    expect(() => parseRedisUrl(url)).toThrow(reason);
    expect(() => parseRedisUrl(url)).toThrow(expect.objectContaining({ code: 'invalid_redis_url' }));
    expect(() => parseRedisUrl(url)).not.toThrow(/hunter/);
  });
});
