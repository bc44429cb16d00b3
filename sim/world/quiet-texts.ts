import type { Market } from './market.ts';
import { isQuiet, movesOf } from './quiet-market.ts';
import type { World } from './world.ts';

interface KeptText {
  readonly moves: number;
  readonly text: string;
}

/** One JSON text per quiet market, kept until its quotes move. The text of another market is made at each request. */
export class QuietTexts {
  private readonly world: World;
  private readonly kept: (KeptText | undefined)[] = [];

  constructor(world: World) {
    this.world = world;
  }

  of(market: Market, make: () => string): string {
    if (!isQuiet(market)) return make();
    const { no } = market.spec;
    const moves = movesOf(market, this.world);
    const known = this.kept[no];
    if (known?.moves === moves) return known.text;
    const text = make();
    this.kept[no] = { moves, text };
    return text;
  }
}
