import { z } from 'zod';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { param } from '../http/input.ts';
import { MARKET_ID_EXAMPLE, OUTCOME_ID_EXAMPLE } from './market.ts';
import { history } from './series.ts';
import { coldReads, decimalValue, epochTime, opaqueId } from './wire.ts';

/** A trade (specification section 2.7, plus `outcome_id`). */
export const trade = z.object({
  trade_id: opaqueId,
  market_id: opaqueId,
  outcome_id: opaqueId,
  timestamp: epochTime,
  price: decimalValue,
  size: decimalValue,
  side: z.enum(['buy', 'sell']).optional().meta({ description: 'Side of the taker, if known.' }),
});
export type TradeBody = z.output<typeof trade>;

export const tradeExample: TradeBody = {
  trade_id: '0x9a5e7b0a4c1d7be5a7f10a8b35c6c14b3b6b2a44c90d5bd3b1cf4ef2a4d1c0e7',
  market_id: MARKET_ID_EXAMPLE,
  outcome_id: OUTCOME_ID_EXAMPLE,
  timestamp: 1767323039,
  price: decimalField('0.62'),
  size: decimalField('25'),
  side: 'buy',
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
