import type { RandomStream } from '../random.ts';

/** The answers of the one negative-risk event; the beliefs sum to exactly one. */
export const NEG_RISK_ANSWERS = [
  { title: '50+ bps decrease', phrase: 'decrease interest rates by 50+ bps', fundamental: 31_000 },
  { title: '25 bps decrease', phrase: 'decrease interest rates by 25 bps', fundamental: 236_000 },
  { title: 'No change', phrase: 'leave interest rates unchanged', fundamental: 612_000 },
  { title: '25 bps increase', phrase: 'increase interest rates by 25 bps', fundamental: 94_000 },
  { title: '50+ bps increase', phrase: 'increase interest rates by 50+ bps', fundamental: 27_000 },
] as const;

const SUBJECTS = [
  'a crewed lunar landing',
  'a national rail strike',
  'a new world marathon record',
  'a category 5 Atlantic hurricane',
  'a ceasefire agreement',
  'a snap general election',
  'the spot silver price above $60',
  'a top-ten box office sequel',
  'a magnitude 8 earthquake',
  'a stablecoin law',
  'a record monthly temperature',
  'a public listing of a rocket company',
  'a tariff reduction deal',
  'a new central bank governor',
  'a merger of two airlines',
  'a 5th major for the title holder',
];
const FRAMES = ['Will there be {s} by {d}?', 'Will {s} be confirmed by {d}?', 'Will we see {s} before {d}?'];
const TEAMS = ['Northport', 'Riverton', 'Stonebridge', 'Ashford', 'Lakemont', 'Westhaven', 'Oakfield', 'Kingsport'];

const DAY_NAME = new Intl.DateTimeFormat('en-US', { month: 'long', day: 'numeric', year: 'numeric', timeZone: 'UTC' });

/** A generated question; about one in six has two named sides instead of yes and no. */
export function plainQuestion(
  no: number,
  random: RandomStream,
  nowSecond: number,
): { question: string; outcomes: readonly [string, string] } {
  if (random.chance(160_000)) {
    const home = random.below(TEAMS.length);
    const away = (home + 1 + random.below(TEAMS.length - 1)) % TEAMS.length;
    const sides: readonly [string, string] = [TEAMS[home] ?? 'Home', TEAMS[away] ?? 'Away'];
    return { question: `${sides[0]} vs. ${sides[1]} (round ${no})`, outcomes: sides };
  }
  const day = DAY_NAME.format((nowSecond + random.between(20, 300) * 86_400) * 1000);
  const question = random.pick(FRAMES).replace('{s}', random.pick(SUBJECTS)).replace('{d}', day);
  return { question, outcomes: ['Yes', 'No'] };
}

/** Lower-case words joined by dashes, made unique by the market's number as the venue does. */
export function slugOf(text: string, no: number): string {
  const words = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return `${words}-${no}`;
}
