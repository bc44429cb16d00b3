import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { ReceivedRequest } from '../../sim/receiver.ts';
import { verifyStandard } from '../../src/domain/webhooks/signature.ts';
import { type ProcessName, WEBHOOK_SECRET } from '../support/processes/system.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { type Campaign, startCampaign } from './campaign/campaign.ts';

const NAMES: readonly ProcessName[] = ['api', 'poller', 'aggregator', 'alerter', 'deliverer'];
const MINUTE_MS = 60_000;
/** The largest difference between a clock and the database's. */
const OFFSETS_MS = [0, 60 * MINUTE_MS, -60 * MINUTE_MS, 5 * MINUTE_MS, -5 * MINUTE_MS];
/** An attempt's deadline and a margin: a request may have been signed this much earlier than its arrival. */
const SENDING_MS = 16_000;

/** The wall clocks of the processes, which can be set separately at run time. */
class Clocks {
  readonly folder = mkdtempSync(join(tmpdir(), 'oddswire-clocks-'));
  /** The offset of the deliverer's clock, and its start. */
  readonly delivererWas = [{ sinceMs: 0, offsetMs: 0 }];

  constructor() {
    for (const name of NAMES) this.set(name, 0);
  }

  /** The variables that make a process read the clock of its name. */
  get environmentOf(): Record<ProcessName, Record<string, string>> {
    const preload = pathToFileURL('test/support/processes/stepped-clock.mjs').href;
    const variables = NAMES.map((name) => [
      name,
      { NODE_OPTIONS: `--import ${preload}`, CLOCK_OFFSET_FILE: join(this.folder, name) },
    ]);
    return Object.fromEntries(variables);
  }

  set(name: ProcessName, offsetMs: number): void {
    writeFileSync(join(this.folder, name), String(offsetMs));
    if (name === 'deliverer') this.delivererWas.push({ sinceMs: Date.now(), offsetMs });
  }

  /** Whether a request carries a time that the deliverer's clock can have shown at its signing. */
  explains({ headers, receivedAtMs }: ReceivedRequest): boolean {
    const signedAtMs = Number(headers['webhook-timestamp']) * 1000;
    const untilMs = (index: number) => this.delivererWas[index + 1]?.sinceMs ?? Number.POSITIVE_INFINITY;
    return this.delivererWas.some(({ sinceMs, offsetMs }, index) => {
      const wasInForce = sinceMs <= receivedAtMs && untilMs(index) >= receivedAtMs - SENDING_MS;
      const ageMs = receivedAtMs + offsetMs - signedAtMs;
      return wasInForce && ageMs >= -1_000 && ageMs <= SENDING_MS;
    });
  }
}

function isSigned({ headers, body }: ReceivedRequest): boolean {
  const timestamp = String(headers['webhook-timestamp']);
  const delivery = {
    id: String(headers['webhook-id']),
    timestamp,
    signature: String(headers['webhook-signature']),
    body,
  };
  return verifyStandard([WEBHOOK_SECRET], delivery, Number(timestamp)) === 'ok';
}

describe.each(BACKENDS)('processes whose clocks are set, queues on %s', (backend) => {
  let campaign: Campaign | undefined;
  let clocks: Clocks | undefined;
  afterEach(async () => {
    await campaign?.stop();
    if (clocks) rmSync(clocks.folder, { recursive: true });
    campaign = undefined;
  });

  it.skipIf(!isAvailable(backend))('continue their work with any combination of clocks', async () => {
    clocks = new Clocks();
    const { environmentOf } = clocks;
    campaign = await startCampaign({ name: 'clock stepped', backend, environmentOf, areSignaturesFresh: false });
    const { random, fleet } = campaign;
    const turn = random.below(OFFSETS_MS.length);
    // Each process has each offset once, and in each round all offsets differ.
    for (let round = 1; round <= OFFSETS_MS.length; round++) {
      for (const [at, name] of NAMES.entries()) {
        const offsetMs = OFFSETS_MS[(at + turn + round * 2) % OFFSETS_MS.length] ?? 0;
        await campaign.blow(`${name} off by ${offsetMs / MINUTE_MS} min`, () => clocks?.set(name, offsetMs));
        await delay(random.below(500));
      }
      await campaign.recovered();
      await delay(random.between(1_000, 3_000));
    }
    for (const name of NAMES) await campaign.blow(`${name} right again`, () => clocks?.set(name, 0));
    await campaign.recovered();
    await campaign.expectNothingLost();
    // A receiver rejects a timestamp too far from its own clock; the signature is valid for the time in the header.
    const { requests } = fleet.receiver;
    expect(requests.filter((request) => !isSigned(request))).toEqual([]);
    expect(requests.filter((request) => !clocks?.explains(request)).map(({ headers }) => headers)).toEqual([]);
  });
});
