import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Reply } from '../../sim/receiver.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';

const SICK = ['/sick-1', '/sick-2', '/sick-3'];
const ROUNDS = 8;
const ATTEMPT_LIMIT_MS = 1_500;
/** The limit for a healthy receiver beside faulty ones: a poll, an evaluation and a request, on a loaded machine. */
const PROMPT_MS = 15_000;

function answerForEver(response: ServerResponse, status: number): undefined {
  response.writeHead(status, { 'content-type': 'text/plain' });
  const more = setInterval(() => response.write('more '.repeat(500)), 20);
  response.once('close', () => clearInterval(more));
  return undefined;
}

type Sickness = (response: ServerResponse) => Reply | undefined | Promise<Reply | undefined>;

const SICKNESSES: Record<string, Sickness> = {
  'answers 500': () => ({ status: 500 }),
  'asks to wait': () => ({ status: 503, headers: { 'retry-after': '1' } }),
  'is refused by a proxy': () => ({ status: 403, body: '<html>no</html>' }),
  hangs: () => undefined,
  'resets the connection': (response) => {
    response.socket?.destroy();
    return undefined;
  },
  'answers too late': async () => {
    await delay(ATTEMPT_LIMIT_MS * 1.5);
    return { status: 500 };
  },
  'is slow': () => ({ delayMs: ATTEMPT_LIMIT_MS / 2 }),
  'points elsewhere': () => ({ status: 307, headers: { location: '/elsewhere' } }),
  'fails without end': (response) => answerForEver(response, 500),
  // Success, even when the body stalls.
  'thanks without end': (response) => answerForEver(response, 200),
};

describe.each(BACKENDS)('the deliverer with receivers that misbehave, queues on %s', (backend) => {
  let campaign: Campaign | undefined;
  afterEach(async () => {
    await campaign?.stop();
    campaign = undefined;
  });

  it.skipIf(!isAvailable(backend))(
    'delivers every event after the faults, and delays none at a healthy receiver',
    async () => {
      campaign = await startCampaign({
        name: 'receiver faults',
        backend,
        environment: {
          WEBHOOK_TIMEOUT_MS: String(ATTEMPT_LIMIT_MS),
          WEBHOOK_RETRY_SCHEDULE: '1,1,2,2,2,2,5,5,5,5,5,5,5,5',
        },
      });
      const { random, fleet, load } = campaign;
      const [healthy] = load.webhookIds;
      for (const path of SICK) await campaign.subscribe(path);
      const sicknessOf = new Map<string, Sickness>();
      campaign.replyWith(({ path }, response) => sicknessOf.get(path)?.(response) ?? {});
      for (let round = 1; round <= ROUNDS; round++) {
        const victims = SICK.filter(() => random.chance(600_000));
        const chosen = victims.map((path) => [path, random.pick(Object.keys(SICKNESSES))] as const);
        await campaign.blow(JSON.stringify(chosen), async () => {
          for (const [path, name] of chosen) sicknessOf.set(path, SICKNESSES[name] as Sickness);
          const over = delay(random.between(1_000, 5_000));
          const startedAtMs = Date.now();
          expect((await campaign?.probe(PROMPT_MS, healthy)) ?? 0).toBeLessThan(startedAtMs + PROMPT_MS);
          await over;
          sicknessOf.clear();
        });
        await campaign.recovered();
      }
      await campaign.expectNothingLost();
      const { requests } = fleet.receiver;
      expect(requests.filter(({ path }) => path === '/elsewhere')).toEqual([]);
      expect(requests.filter(({ path, duplicate }) => path === '/hook' && duplicate)).toEqual([]);
    },
  );
});
