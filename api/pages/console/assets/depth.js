// The values of the depth of a book under the cursor, and with the arrow keys.
const digits = (value) => value.toLocaleString('en-US', { maximumFractionDigits: 6 });

/** Follows the cursor over the depth in `part`, whose markup changes with the book. Returns a function to call after a change. */
export function connectDepth(part, text) {
  /** The place in the levels from the worst bid to the worst ask; undefined without a cursor. */
  let at;
  part.tabIndex = 0;
  part.setAttribute('role', 'group');
  part.setAttribute('aria-label', 'Depth of the book: the arrow keys go through its levels');

  function levels() {
    const { dataset } = part.querySelector('figure') ?? { dataset: { bids: '', asks: '' } };
    const of = (side) => {
      let sum = 0;
      return dataset[side]
        .split(',')
        .filter(Boolean)
        .map((each) => {
          const [price, size] = each.split(' ').map(Number);
          sum += size;
          return { side, price, sum };
        });
    };
    return [...of('bids').reverse(), ...of('asks')];
  }

  function show() {
    const figure = part.querySelector('figure');
    const all = levels();
    const level = at === undefined ? undefined : all[Math.min(all.length - 1, Math.max(0, at))];
    const cursor = figure?.querySelector('.cursor');
    if (!level) {
      text.textContent = '';
      cursor?.setAttribute('d', '');
      return;
    }
    const words = level.side === 'asks' ? 'offered at' : 'bid at';
    text.textContent = `${digits(level.sum)} ${words} ${digits(level.price)} or better`;
    const { width, height } = figure.querySelector('svg').viewBox.baseVal;
    const [from, to] = [Number(figure.dataset.from), Number(figure.dataset.to)];
    cursor.setAttribute('d', `M${((level.price - from) / (to - from)) * width} 0V${height}`);
  }

  part.addEventListener('pointermove', (event) => {
    const figure = event.target.closest?.('figure');
    if (!figure) return;
    const { left, width } = figure.querySelector('svg').getBoundingClientRect();
    const [from, to] = [Number(figure.dataset.from), Number(figure.dataset.to)];
    const price = from + ((event.clientX - left) / width) * (to - from);
    const distances = levels().map((level) => Math.abs(level.price - price));
    at = distances.indexOf(Math.min(...distances));
    show();
  });
  part.addEventListener('pointerleave', () => {
    at = undefined;
    show();
  });
  part.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.target !== part) return;
    event.preventDefault();
    const all = levels();
    const middle = all.filter(({ side }) => side === 'bids').length;
    const next = at === undefined ? (step < 0 ? middle - 1 : middle) : at + step;
    at = Math.min(all.length - 1, Math.max(0, next));
    show();
  });
  return show;
}
