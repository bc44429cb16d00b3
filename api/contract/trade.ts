import { z } from 'zod';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { TRADE } from '../../src/domain/wire/market-data.ts';
import { param } from '../http/input.ts';
import { history } from './series.ts';
import { coldReads, MARKET_ID_EXAMPLE, OUTCOME_ID_EXAMPLE, shapeOf } from './wire.ts';

export const trade = z.object(shapeOf(TRADE));
export type TradeBody = z.output<typeof trade>;

export const tradeExample: TradeBody = {
  trade_id: '0x9a5e7b0a4c1d7be5a7f10a8b35c6c14b3b6b2a44c90d5bd3b1cf4ef2a4d1c0e7',
  market_id: MARKET_ID_EXAMPLE,
  outcome_id: OUTCOME_ID_EXAMPLE,
  timestamp: 1767323039,
  price: decimalField('0.62'),
  size: decimalField('25'),
  side: 'buy',
  received_at: 1767323041,
};

export const tradeQuery = z.object({
  limit: param.limit,
  cursor: param.cursor,
  direction: param.direction,
  start: param.start,
  end: param.end,
  outcome_id: param.outcomeId.meta({ description: 'Default: all outcomes of the market.' }),
});
export const tradeMeta = z.object({
  next_cursor: z.string().nullable().meta({ description: 'Null on the last page.' }),
  history,
  cold_reads: coldReads,
});
