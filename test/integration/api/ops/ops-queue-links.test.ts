import { beforeAll, expect, it } from 'vitest';
import { newId } from '../../../../src/domain/values/ids.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { useTestApi } from '../api-harness.ts';
import { logIn, type OpsClient, testOps } from './ops-client.ts';

const QUEUES = ['venue-polymarket', 'alerts', 'deliveries', 'candles'];

interface ShownJob {
  name: string;
  externalUrl?: { displayText: string; href: string };
}

const api = useTestApi({ ops: testOps({ queueNames: QUEUES }) });
let viewer: OpsClient;
beforeAll(async () => {
  viewer = await logIn(api, 'viewer');
});

/** The jobs of a queue as the dashboard reads them. */
async function jobsOf(queue: string): Promise<ShownJob[]> {
  const answer = await viewer.call(`/ops/queues/api/queues?activeQueue=${queue}&status=latest&page=1&jobsPerPage=50`);
  expect(answer.status).toBe(200);
  const { queues } = JSON.parse(answer.text) as { queues: { name: string; jobs: ShownJob[] }[] };
  return queues.find(({ name }) => name === queue)?.jobs ?? [];
}

it('the link of a job leads to the page of the object that it names', async () => {
  const accountId = await anAccount(api.db);
  const id = newId('wh');
  const pk = await aSubscription(api.db, { id, accountId });
  const { queue } = api.deps.producer;
  await queue('venue-polymarket').add('poll-prices', { venue: 'polymarket' });
  await queue('deliveries').add('deliver-webhook', { subscriptionPk: String(pk) });
  await queue('deliveries').add('deliver-due', { lane: 1 });
  await queue('alerts').add('evaluate-alerts', { lane: 1 });
  await queue('candles').add('fold-candles', { lane: 1 });
  const expected: Record<string, [text: string, title: string, content: string]> = {
    'poll-prices': ['Venue polymarket', 'Polymarket', 'No poll yet'],
    'deliver-webhook': ['Webhook', `Webhook ${id}`, 'receiver.test'],
    'deliver-due': ['Deliveries', 'Deliveries', 'aria-current="true">Pending '],
    'evaluate-alerts': ['Alerts', 'Alerts', '<a href="/ops/alerts" aria-current="page">'],
    'fold-candles': ['Stages', 'Overview', 'id="stages"'],
  };
  const jobs = (await Promise.all(QUEUES.map(jobsOf))).flat();
  expect(jobs.map(({ name }) => name).sort()).toEqual(Object.keys(expected).sort());
  for (const { name, externalUrl } of jobs) {
    const [text, title, content = ''] = expected[name] ?? [];
    expect(externalUrl?.displayText).toBe(text);
    const page = await viewer.page(externalUrl?.href ?? '');
    expect([name, page.status]).toEqual([name, 200]);
    expect(page.text).toContain(`<h1>${title}</h1>`);
    expect(page.text).toContain(content);
  }
});
