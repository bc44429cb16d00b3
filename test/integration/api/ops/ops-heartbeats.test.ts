import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createHostMeasures, type HostMeasures } from '../../../../src/observe/host-measures.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { startHeartbeat } from '../../../../src/runtime/heartbeat.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { beat, beginHeartbeat, endHeartbeat, listHeartbeats } from '../../../../src/store/ops/heartbeats.ts';
import { eventually } from '../../../support/eventually.ts';
import { OddswireProcess } from '../../../support/processes/system.ts';
import { useTestApi } from '../api-harness.ts';
import { logIn, type OpsClient, testOps } from './ops-client.ts';

const api = useTestApi({ ops: testOps(), now: Date.now });
let viewer: OpsClient;
beforeAll(async () => {
  viewer = await logIn(api, 'viewer');
});

const OTHERS = ['api', 'poller', 'aggregator', 'alerter'];

/** The text of the first part of the overview, once it fulfils the condition. The overview is at most two seconds old. */
function stateUntil(isReached: (text: string) => boolean): Promise<string> {
  return eventually(async () => {
    const { state } = (await viewer.call('/ops/overview.json')).body as unknown as { state: string };
    return state.replaceAll(/<[^>]*>/g, '');
  }, isReached);
}

describe('the overview of a running deliverer', () => {
  it('reports a deliverer that is suspended, and later its return', async () => {
    const identity = { host: 'machine', pid: 1, version: '1.0.0' };
    const beats = await Promise.all(
      OTHERS.map((process) => startHeartbeatOf(() => beginHeartbeat(api.db, { process, ...identity }))),
    );
    const deliverer = new OddswireProcess('deliverer', {
      DATABASE_URL: api.databaseUrl,
      SECRETS_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      VENUES: 'polymarket',
      METRICS_PORT: '0',
    });
    try {
      await deliverer.start();
      await stateUntil((text) => !text.includes('deliverer'));
      deliverer.signal('SIGSTOP');
      const stopped = await stateUntil((text) => text.includes('The deliverer stopped'));
      expect(stopped).toMatch(
        new RegExp(
          `The deliverer stopped: process ${deliverer.pid} on \\S+ sends no heartbeat.\\s+Since\\s*\\d\\d:\\d\\d:\\d\\d UTC`,
        ),
      );
      deliverer.signal('SIGCONT');
      await stateUntil((text) => !text.includes('deliverer'));
      await deliverer.end('SIGTERM');
      expect(await stateUntil((text) => text.includes('deliverer'))).toContain('No deliverer runs');
      expect((await listHeartbeats(api.db)).filter(({ process }) => process === 'deliverer')).toEqual([]);
    } finally {
      await deliverer.end('SIGKILL');
      for (const each of beats) await each.stop();
    }
  });
});

/** Beats for a process that does not run here. */
async function startHeartbeatOf(begin: () => Promise<number>, lateShare = 0) {
  const id = await begin();
  const timer = setInterval(() => void beat(api.db, id, lateShare).catch(() => undefined), 500);
  return {
    async stop() {
      clearInterval(timer);
      await endHeartbeat(api.db, id);
    },
  };
}

describe('the overview of an overloaded machine', () => {
  it('names the machine in its first line, with the parts of its processes', async () => {
    const identity = { host: 'slow-machine', pid: 1, version: '1.0.0' };
    const beats = await Promise.all(
      OTHERS.map((process, i) =>
        startHeartbeatOf(() => beginHeartbeat(api.db, { process, ...identity }), i > 1 ? 0.4 : 0),
      ),
    );
    try {
      const text = await stateUntil((state) => state.includes('slow-machine'));
      expect(text).toMatch(
        /^The machine slow-machine is overloaded. Its processes ran late in these parts of the last 10 s: aggregator 40 %, alerter 40 %. Load, memory and disk are unknown/,
      );
    } finally {
      for (const each of beats) await each.stop();
    }
  });
});

describe('a heartbeat', () => {
  const silence = sql(
    'test_silence',
    `UPDATE process_heartbeat SET seen_at = m.at, started_at = m.at
     FROM (SELECT clock_timestamp() - $2 * interval '1 second' AS at) m WHERE id = $1`,
  );
  const identity = { process: 'poller', host: 'other', pid: 5, version: '1.0.0' };
  const rows = async () => (await listHeartbeats(api.db)).filter(({ host }) => host === 'other');

  it('shows how long a process has been silent, and whether another one replaced it', async () => {
    const id = await beginHeartbeat(api.db, identity);
    await api.db.query(silence, [id, 90]);
    const [row] = await rows();
    expect(row).toMatchObject({ ...identity, isReplaced: false });
    expect(row?.silentMs).toBeGreaterThanOrEqual(90_000);
    const next = await beginHeartbeat(api.db, { ...identity, pid: 6 });
    expect((await rows()).map(({ pid, isReplaced }) => [pid, isReplaced])).toEqual([
      [5, true],
      [6, false],
    ]);
    await endHeartbeat(api.db, next);
    expect(await beat(api.db, next, 0)).toBe(false);
    expect((await rows())[0]).toMatchObject({ pid: 5, lateShare: null });
    // As a process of the former release, which does not measure its machine.
    expect(await beat(api.db, id, 0.625)).toBe(true);
    expect((await rows())[0]).toMatchObject({ pid: 5, lateShare: 0.625, measured: null });
    const measured = createHostMeasures({ data: '.', archive: '/nowhere' }).measure();
    expect(await beat(api.db, id, 0, measured)).toBe(true);
    expect((await rows())[0]?.measured).toEqual(measured);
    await endHeartbeat(api.db, id);
  });

  it('is forgotten a day after the end of its process', async () => {
    const id = await beginHeartbeat(api.db, identity);
    await api.db.query(silence, [id, 90_000]);
    const next = await beginHeartbeat(api.db, { ...identity, pid: 6 });
    expect((await rows()).map(({ pid }) => pid)).toEqual([6]);
    await endHeartbeat(api.db, next);
  });

  it('has the load, the memory and the disks of its machine', async () => {
    const folders = { data: '.', archive: '/nowhere' };
    const heartbeat = startHeartbeat(api.db, 'alerter', createLogger({ process: 'test', level: 'silent' }), folders);
    const own = async () => (await listHeartbeats(api.db)).find(({ pid }) => pid === process.pid)?.measured ?? null;
    const measured = await eventually(own, (found) => found?.disks.some((disk) => 'total' in disk) ?? false);
    expect(measured?.disks).toEqual([{ folder: 'data', total: expect.any(Number), available: expect.any(Number) }]);
    expect(measured?.memory.limit).toBeGreaterThan(measured?.memory.used ?? 0);
    expect(measured?.memory.available).toBeLessThanOrEqual(measured?.memory.limit ?? 0);
    expect([measured?.loadPerCore, measured?.loopDelayMs]).toEqual([expect.any(Number), expect.any(Number)]);
    await heartbeat.close();
  });

  it('has the reason instead of figures for a disk that is not measured yet or cannot be measured', async () => {
    // A path below a file.
    const host = createHostMeasures({ data: '.', archive: 'package.json/archive' });
    expect(host.measure().disks).toEqual([
      { folder: 'data', unknown: 'not measured yet' },
      { folder: 'archive', unknown: 'not measured yet' },
    ]);
    const isMeasured = (found: HostMeasures) => found.disks.every((disk) => JSON.stringify(disk).search('yet') < 0);
    expect((await eventually(async () => host.measure(), isMeasured)).disks).toEqual([
      { folder: 'data', total: expect.any(Number), available: expect.any(Number) },
      { folder: 'archive', unknown: 'statfs failed: ENOTDIR' },
    ]);
  });

  it('has no figures older than two minutes of a disk that no longer answers, and those of the other disk', async () => {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1_000_000);
    const space = { blocks: 10, bsize: 4_096, bavail: 5 };
    const figures = { total: 40_960, available: 20_480 };
    let isLost = false;
    const readSpace = (path: string) =>
      isLost && path === 'a' ? new Promise<typeof space>(() => undefined) : Promise.resolve(space);
    const host = createHostMeasures({ data: 'd', archive: 'a' }, readSpace);
    const archiveAt = async (seconds: number) => {
      clock.mockReturnValue(1_000_000 + seconds * 1_000);
      host.measure();
      await new Promise(setImmediate);
      const [data, archive] = host.measure().disks;
      expect(data).toEqual({ folder: 'data', ...figures });
      return archive;
    };
    try {
      expect(await archiveAt(0)).toEqual({ folder: 'archive', ...figures });
      isLost = true;
      expect(await archiveAt(31)).toEqual({ folder: 'archive', ...figures });
      expect(await archiveAt(120)).toEqual({ folder: 'archive', ...figures });
      expect(await archiveAt(152)).toEqual({ folder: 'archive', unknown: 'statfs does not answer' });
      expect(await archiveAt(9_000)).toEqual({ folder: 'archive', unknown: 'statfs does not answer' });
    } finally {
      clock.mockRestore();
    }
  });

  it('begins again when its row is gone, and ends with the process', async () => {
    const heartbeat = startHeartbeat(api.db, 'alerter', createLogger({ process: 'test', level: 'silent' }), {
      data: '.',
      archive: '/nowhere',
    });
    const own = async () => (await listHeartbeats(api.db)).filter(({ pid }) => pid === process.pid);
    const [first] = await eventually(own, (found) => found.length === 1);
    await api.db.query(sql('test_forget_heartbeat', 'DELETE FROM process_heartbeat WHERE pid = $1'), [process.pid]);
    const [second] = await eventually(own, (found) => found.length === 1);
    expect(second?.startedAt.getTime()).toBeGreaterThan(first?.startedAt.getTime() ?? 0);
    await heartbeat.close();
    expect(await own()).toEqual([]);
  });
});
