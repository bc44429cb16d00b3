import { expect, it } from 'vitest';
import { Categories } from '../../../api/streams/filter.ts';
import type { Change } from '../../../src/domain/live/change.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import { gate } from '../../support/gate.ts';

it('the categories of streams keep that of a change that arrived while an older one was read', async () => {
  const answered = gate();
  const db: Queryable = {
    async query<Row>() {
      await answered.opened;
      return [{ venue: 'kalshi', marketId: 'm', category: 'Politics' }] as Row[];
    },
  };
  const categories = new Categories(db);
  const loading = categories.load([{ venue: 'kalshi', marketId: 'm' }] as Change[]);
  categories.learn({
    kind: 'market',
    venue: 'kalshi',
    marketId: 'm',
    body: { category: 'Sports' },
  } as unknown as Change);
  answered.open();
  await loading;
  expect(categories.of('kalshi', 'm')).toBe('Sports');
});
