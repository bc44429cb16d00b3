import { Agent } from 'node:http';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ArchiveFolder } from '../../api/reads/archive-folder.ts';
import { createLogger } from '../../src/observe/logger.ts';
import { anArchivedDay, anArchiveFolder } from '../factories/archive.ts';
import { startTestApi, type TestApi } from '../integration/api/api-harness.ts';
import { operationsOf } from '../support/api-contract.ts';
import { forTests } from '../support/for-tests.ts';
import { contentTypes, type Plan, plans } from './requests.ts';
import { type Outgoing, outgoing, parsed, type Received, send, wrongs } from './send.ts';
import { aWorld, learn, SPARE, type World } from './world.ts';

/** `FUZZ_REQUESTS=100000 FUZZ_SEED=… FUZZ_PATH=…`: the number of requests, and the printed seed and path of a failure. */
const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 5_000);
const SEED = process.env['FUZZ_SEED'];
const PATH = process.env['FUZZ_PATH'];
const BATCH = 50;
const EXACTLY = { minLength: BATCH, maxLength: BATCH };
const MOST_BATCHES_AGAIN = 40;

const folder = forTests(anArchiveFolder, ({ remove }) => remove());
let api: TestApi;
let world: World;
const agent = new Agent({ keepAlive: true, maxSockets: 16 });

beforeAll(async () => {
  const archive = new ArchiveFolder(folder.dir, createLogger({ process: 'test', level: 'silent' }));
  api = await startTestApi({ archive });
  world = await aWorld(api);
  for (const date of ['2026-01-01', '2026-01-02']) {
    learn(world, 'archive_file', (await anArchivedDay(api.db, folder.dir, { date })).file);
  }
});
afterAll(async () => {
  agent.destroy();
  await api.close();
});

type FullPlan = Plan & { contentType: string };
/** The number of answers per route and status. */
const seen = new Map<string, Map<number, number>>();

async function ask(plan: FullPlan): Promise<void> {
  const out = outgoing(plan, world);
  const answer = await send(api.url, agent, out);
  if (!answer) return;
  const counts = seen.get(plan.operationId) ?? new Map<number, number>();
  seen.set(plan.operationId, counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1));
  const fault = faultOf(plan, out, answer);
  if (fault) throw new Error(`${fault}\n${describeExchange(out, answer)}`);
  if (answer.status === 201) learnFrom(plan, answer);
}

/** Faults besides the contract violations that the harness finds. */
function faultOf(plan: FullPlan, out: Outgoing, { status, headers, body }: Received): string | undefined {
  if (status >= 500) return `answered ${status}`;
  if (status >= 400 && plan.method !== 'HEAD') {
    const failed = parsed(body) as { error: { code: unknown; message: string } } | undefined;
    if (!failed) return 'a failed answer without a body';
    const { error } = failed;
    const problems = api.contract.problemsOfValue(error.code, '#/components/schemas/ErrorCode');
    if (problems.length > 0) return problems.join('; ');
    if (/node_modules|\.ts:|\bat \w+ \(|SELECT|INSERT/.test(error.message)) return 'the message shows internals';
  }
  if (headers['x-request-id'] === undefined) return 'no X-Request-Id';
  if (status >= 400) return undefined;
  const [wrong] = wrongs(api.contract, plan, out);
  return wrong === undefined ? undefined : `the API accepted input that the document rejects: ${wrong}`;
}

/** The routes without a successful answer. */
function unanswered(): string[] {
  return operationsOf(api.contract.document)
    .map(({ operation }) => operation.operationId)
    .filter((id) => ![...(seen.get(id)?.keys() ?? [])].some((status) => status < 300));
}

const MADE: Readonly<Record<string, string>> = {
  '/v1/webhooks': 'webhook_id',
  '/v1/alerts': 'alert_id',
  '/v1/wallets': 'wallet_id',
  '/v1/keys': 'key_id',
};

function learnFrom({ path }: Plan, { body }: Received): void {
  const { data } = parsed(body) as { data: { id: string } };
  learn(world, `${SPARE}${MADE[path]}`, data.id);
}

function describeExchange(out: Outgoing, { status, body }: Received): string {
  const { method, target, headers } = out;
  return [
    `${method} ${target.slice(0, 500)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value.slice(0, 200)}`),
    out.body?.toString('utf8').slice(0, 500) ?? '',
    `-> ${status} ${body.toString('utf8').slice(0, 500)}`,
  ].join('\n');
}

it(`the API answers ${REQUESTS} generated requests according to the document`, {
  timeout: 600_000 + REQUESTS * 60,
}, async () => {
  const plan = fc
    .tuple(plans(api.contract), contentTypes)
    .map(([planned, contentType]): FullPlan => ({ ...planned, contentType }));
  const batches = fc.array(plan, EXACTLY);
  const property = fc.asyncProperty(batches, async (batch) => {
    const answered = await Promise.allSettled(batch.map(ask));
    for (const one of answered) if (one.status === 'rejected') throw one.reason;
    api.checkAnswers();
  });
  const run = await fc.check(property, {
    numRuns: Math.ceil(REQUESTS / BATCH),
    ...(SEED !== undefined && { seed: Number(SEED) }),
    ...(PATH !== undefined && { path: PATH }),
    // The error names the failing exchange, so shrinking would not add information.
    endOnFailure: true,
  });
  if (run.failed) {
    const replay = `FUZZ_REQUESTS=${REQUESTS} FUZZ_SEED=${run.seed} FUZZ_PATH=${run.counterexamplePath}`;
    throw new Error(`${String(run.errorInstance)}\nto reproduce: ${replay} npx vitest run test/fuzz`);
  }
  // The requests may have paused or deleted the few rows that a route needs. Each further batch finds a new world.
  for (let batches = 0; batches < MOST_BATCHES_AGAIN && unanswered().length > 0; batches += 1) {
    world = await aWorld(api);
    const wanted = new Set(unanswered());
    const [batch = []] = fc.sample(
      fc.array(
        plan.filter(({ operationId }) => wanted.has(operationId)),
        EXACTLY,
      ),
      {
        numRuns: 1,
        seed: run.seed + batches,
      },
    );
    for (const each of batch) await ask(each);
    api.checkAnswers();
  }
  if (process.env['FUZZ_VERBOSE'])
    for (const [id, counts] of seen) process.stdout.write(`${id} ${JSON.stringify(Object.fromEntries(counts))}\n`);
  // Every route was reached and succeeded at least once; otherwise the test would prove little.
  expect(unanswered()).toEqual([]);
});
