import { beforeAll, describe, expect, it } from 'vitest';
import { useHttpExchange } from './http-exchange.ts';

interface Contract {
  id: string;
  slug: string;
  outcomeType: string;
  volume: number;
  answers?: { id: string }[];
}
interface Bet {
  id: string;
  contractId: string;
  answerId?: string;
  createdTime: number;
  amount: number;
  isRedemption: boolean;
}

const { http, exchange } = useHttpExchange({ historyHours: 0.1 }, 200);
let contracts: Contract[];
beforeAll(async () => {
  contracts = await http.get<Contract[]>(http.manifold('/markets?limit=1000'));
});

const bets = (query: string) => http.get<Bet[]>(http.manifold(`/bets?${query}`));
const busiest = () => contracts.filter((each) => each.outcomeType === 'BINARY').toSorted((a, b) => b.volume - a.volume);

describe('Manifold bets of one contract', () => {
  it('page back to the first bet, each once, when pages overlap by their last millisecond', async () => {
    const contract = busiest()[3];
    const seen = new Map<string, Bet>();
    for (let bound = ''; ; ) {
      const page = await bets(`contractId=${contract?.id}&limit=17${bound}`);
      const known = seen.size;
      for (const bet of page) seen.set(bet.id, bet);
      if (seen.size === known) break;
      // Exclusive, and a redemption has the same time as its taker.
      bound = `&beforeTime=${(page.at(-1)?.createdTime ?? 0) + 1}`;
    }
    const whole = await bets(`contractSlug=${contract?.slug}&limit=1000`);
    expect(whole.length).toBeGreaterThan(50);
    expect(whole.length).toBeLessThan(1000);
    expect([...seen.values()]).toEqual(whole);
    const times = whole.map((bet) => bet.createdTime);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const printed = exchange.ledger().trades.length;
    const everything = await bets('limit=1000&filterRedemptions=true');
    expect(everything).toHaveLength(Math.min(1000, 2 * printed));
    const share = whole.filter((bet) => !bet.isRedemption && bet.createdTime >= (everything.at(-1)?.createdTime ?? 0));
    expect(everything.filter((bet) => bet.contractId === contract?.id)).toEqual(share);
  });

  it('before a bet are bets before its time', async () => {
    const [contract] = busiest();
    const bet = (await bets(`contractId=${contract?.id}&limit=20`)).at(-1);
    expect(await bets(`contractId=${contract?.id}&before=${bet?.id}`)).toEqual(
      await bets(`contractId=${contract?.id}&beforeTime=${bet?.createdTime}`),
    );
  });

  it('are limited by `after` and `afterTime`, and accept several contracts', async () => {
    const [first, second] = busiest();
    const both = await bets(`contractId=${first?.id}&contractId=${second?.id}&limit=1000`);
    expect(new Set(both.map((bet) => bet.contractId))).toEqual(new Set([first?.id, second?.id]));
    const middle = both[Math.floor(both.length / 2)];
    const later = await bets(`contractId=${first?.id}&contractId=${second?.id}&limit=1000&after=${middle?.id}`);
    expect(later).toEqual(both.filter((bet) => bet.createdTime > (middle?.createdTime ?? 0)));
    expect(
      await bets(`contractId=${first?.id}&contractId=${second?.id}&limit=1000&afterTime=${middle?.createdTime}`),
    ).toEqual(later);
  });

  it('of a multiple-choice contract are distinguished by answer', async () => {
    const multiple = contracts.find((each) => each.outcomeType === 'MULTIPLE_CHOICE');
    const { answers = [] } = await http.get<Contract>(http.manifold(`/market/${multiple?.id}`));
    const own = await bets(`contractId=${multiple?.id}&answerId=${answers[1]?.id}&limit=1000`);
    expect(own.length).toBeGreaterThan(0);
    expect(new Set(own.map((bet) => bet.answerId))).toEqual(new Set([answers[1]?.id]));
  });

  it.each([
    ['an unknown parameter', 'marketId=1', 400],
    ['an invalid time', 'beforeTime=yesterday', 400],
    ['too large a page', 'limit=1001', 400],
    ['an invalid order', 'order=random', 400],
    ['an unknown bet', 'before=nobody', 404],
  ])('reject %s', async (_label, query, status) => {
    expect(await http.get(http.manifold(`/bets?${query}`), status)).toHaveProperty('message');
  });
});

describe('Manifold markets', () => {
  it('are served one by one, each as in the listing', async () => {
    for (const { id, outcomeType } of contracts) {
      expect(await http.get<Contract>(http.manifold(`/market/${id}`))).toMatchObject({ id, outcomeType });
    }
    const [first] = busiest();
    expect(await http.get<Contract>(http.manifold(`/slug/${first?.slug}`))).toMatchObject({ id: first?.id });
  });

  it('give 404 for an unknown id, and 400 for an unknown parameter', async () => {
    expect(await http.get(http.manifold('/market/nobody'), 404)).toEqual({ message: 'Contract not found' });
    await http.get(http.manifold(`/market/${contracts[0]?.id}?full=true`), 400);
    await http.get(http.manifold('/markets?cursor=1'), 400);
  });
});
