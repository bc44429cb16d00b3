import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ConfirmedJournal, confirmJournal } from '../../../support/journal.ts';
import { ofType, openSse } from '../../../support/sse.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const api = useTestApi({ console: {} }, { streams: { heartbeatMs: 15_000 } });
let journal: ConfirmedJournal;
beforeAll(async () => {
  journal = confirmJournal(api.db);
});
afterAll(() => journal.stop());

it.for(['all', 'events'])(
  'streams of pages have a heartbeat each 7 s, and those of programs as configured: %s',
  async (name) => {
    const browser = await signIn(api);
    const own = { 'X-API-Key': browser.key, Authorization: `Bearer ${browser.key}` };
    for (const [path, headers, seconds] of [
      [`/console/stream/${name}`, { cookie: browser.cookie }, 7],
      [`/v1/${name}/stream`, own, 15],
    ] as const) {
      const stream = await openSse(`${api.url}${path}`, headers);
      const { data } = await stream.next(ofType('heartbeat'));
      expect(data).toMatchObject({ data: { interval_seconds: seconds } });
      await stream.close();
    }
  },
);
