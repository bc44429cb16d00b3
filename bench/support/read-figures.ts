import type { BareServer } from './bare-server.ts';
import type { Figure } from './figure.ts';
import { whole } from './numbers.ts';
import { type Api, ROUTES, readRate } from './read-load.ts';

/** Paths whose answers the bare server copies. */
const TAUGHT = 50;

type RouteName = keyof typeof ROUTES;

export interface ReadFigures {
  api: Api;
  bare: BareServer;
  marketIds: readonly string[];
  /** The length of one measurement. */
  seconds: number;
  /** For the title. */
  label: string;
  /** The ratio to reach per route. */
  goals: Readonly<Record<RouteName, number>>;
}

/** The rate of each route over these markets in turn, beside a bare server that sends the same bytes in the same minute. */
export async function readFigures(options: ReadFigures): Promise<Figure[]> {
  const { api, bare, marketIds, seconds, label, goals } = options;
  const figures: Figure[] = [];
  for (const [name, pathOf] of Object.entries(ROUTES) as [RouteName, (id: string) => string][]) {
    const paths = marketIds.map(pathOf);
    const taught = paths.slice(0, TAUGHT);
    const bareUrl = await bare.teach(api.address, taught);
    const length = { seconds };
    const ours = await readRate([api.address], { paths, length });
    const theirs = await readRate([bareUrl], { paths: taught, length });
    const again = await readRate([api.address], { paths, length });
    const rate = (ours.rate + again.rate) / 2;
    figures.push({
      title: `${name}, ${label}`,
      measured: `${whole(rate)} requests/s, p99 ${Math.max(ours.p99Ms, again.p99Ms)} ms`,
      baseline: `bare server ${whole(theirs.rate)} requests/s, p99 ${theirs.p99Ms} ms`,
      ratio: rate / theirs.rate,
      goal: { atLeast: goals[name] },
    });
  }
  return figures;
}
