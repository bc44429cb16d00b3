import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createMetrics } from '../../../src/observe/metrics.ts';
import {
  checkedOncePerSecond,
  createProbeServer,
  type Dependency,
  readiness,
} from '../../../src/observe/probe-server.ts';

const up = (name: string): Dependency => ({ name, check: async () => undefined });
const down = (name: string): Dependency => ({
  name,
  check: async () => Promise.reject(new Error('postgres://u:pw@h')),
});
const hanging = (name: string): Dependency => ({ name, check: () => new Promise(() => undefined) });

describe('checkedOncePerSecond', () => {
  it('shares the outcome of one check for a second, also a failure', async () => {
    vi.useFakeTimers();
    let isUp = true;
    let checks = 0;
    const check = async () => {
      checks += 1;
      if (!isUp) throw new Error('down');
    };
    const shared = checkedOncePerSecond({ name: 'database', check });
    const readAll = () => Promise.all(Array.from({ length: 100 }, () => readiness([shared])));
    expect((await readAll()).every(({ isReady }) => isReady)).toBe(true);
    isUp = false;
    expect((await readAll()).every(({ isReady }) => isReady)).toBe(true);
    expect(checks).toBe(1);
    await vi.advanceTimersByTimeAsync(1_000);
    for (const _ of [1, 2]) expect((await readAll()).some(({ isReady }) => isReady)).toBe(false);
    expect(checks).toBe(2);
    vi.useRealTimers();
  });
});

describe('readiness', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is true when every dependency answers', async () => {
    expect(await readiness([up('database'), up('queue store')])).toEqual({ isReady: true, missing: [] });
    expect(await readiness([])).toEqual({ isReady: true, missing: [] });
  });

  it('names unavailable dependencies, in order', async () => {
    const dependencies = [down('database'), up('x'), down('queue store')];
    expect(await readiness(dependencies)).toEqual({ isReady: false, missing: ['database', 'queue store'] });
  });

  it('stays true without an optional dependency, which is named', async () => {
    const queues = { ...down('queue store'), mayBeMissing: true };
    expect(await readiness([up('database'), queues])).toEqual({ isReady: true, missing: ['queue store'] });
    expect(await readiness([down('database'), queues])).toEqual({
      isReady: false,
      missing: ['database', 'queue store'],
    });
  });

  it('is false after two seconds when checks hang, at any number of them', async () => {
    vi.useFakeTimers();
    const answer = readiness([hanging('a'), hanging('b'), up('c')]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await answer).toEqual({ isReady: false, missing: ['a', 'b'] });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is false when a check throws instead of rejecting', async () => {
    const rude: Dependency = {
      name: 'rude',
      check: () => {
        throw new Error('at once');
      },
    };
    expect(await readiness([rude, up('x')])).toEqual({ isReady: false, missing: ['rude'] });
  });
});

describe('the probe server', () => {
  async function withServer(
    dependencies: Dependency[],
    use: (url: string) => Promise<void>,
    stallReasons: () => Promise<string[]> = async () => [],
  ): Promise<void> {
    const metrics = createMetrics('test');
    metrics.alertsFired.inc(3);
    const server = createProbeServer({ metrics, dependencies, stallReasons }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    }
  }

  it('is live without its dependencies, and ready with all of them', async () => {
    const database = { name: 'database', check: async () => undefined as undefined };
    await withServer([database], async (url) => {
      expect((await fetch(`${url}/health/live`)).status).toBe(200);
      const ready = await fetch(`${url}/health/ready?x=1`);
      expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready' }]);
      database.check = async () => Promise.reject(new Error('postgres://u:pw@h'));
      const missing = await fetch(`${url}/health/ready`);
      const text = await missing.text();
      expect([missing.status, JSON.parse(text)]).toEqual([503, { status: 'not_ready', missing: ['database'] }]);
      expect(text).not.toContain('postgres://');
      expect((await fetch(`${url}/health/live`)).status).toBe(200);
    });
  });

  it('is neither live nor ready when its work is stalled, but only while its dependencies answer', async () => {
    const database = { name: 'database', check: async () => undefined as undefined };
    let why = ['loop restore has not run for 70 s'];
    const probe = async (url: string, path: string) => {
      const response = await fetch(url + path);
      return [response.status, await response.json()];
    };
    await withServer(
      [database],
      async (url) => {
        expect(await probe(url, '/health/live')).toEqual([503, { status: 'wedged', wedged: why }]);
        expect(await probe(url, '/health/ready')).toEqual([503, { status: 'not_ready', missing: [], wedged: why }]);
        database.check = async () => Promise.reject(new Error('away'));
        expect(await probe(url, '/health/live')).toEqual([200, { status: 'live' }]);
        expect(await probe(url, '/health/ready')).toEqual([503, { status: 'not_ready', missing: ['database'] }]);
        database.check = async () => undefined as undefined;
        why = [];
        expect(await probe(url, '/health/live')).toEqual([200, { status: 'live' }]);
        expect(await probe(url, '/health/ready')).toEqual([200, { status: 'ready' }]);
      },
      async () => why,
    );
  });

  it('serves the metrics of this process', async () => {
    await withServer([], async (url) => {
      const metrics = await fetch(`${url}/metrics`);
      expect(metrics.headers.get('content-type')).toContain('text/plain');
      expect(await metrics.text()).toContain('alerts_fired_total{process="test"} 3');
    });
  });

  it('answers 404 on other paths', async () => {
    await withServer([], async (url) => {
      for (const path of ['/', '/metrics/', '/health', '//x']) expect((await fetch(`${url}${path}`)).status).toBe(404);
    });
  });
});
