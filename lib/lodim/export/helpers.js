const number = (x) => x === null || x === undefined ? NaN : Number(x);

const rint = (x) => {
  const low = Math.floor(x), rest = x - low;
  return rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
};

const modulo = (a, b) => a - b * Math.floor(a / b);

const _kernels = (table, ...z) => table.reduce((total, [weight, ...center]) => {
  const square = center.reduce((s, c, k) => s + (z[k] - c) * (z[k] - c), 0);
  return total + weight * Math.exp(-0.5 * square);
}, 0);

const _log_kernels = (table, ...z) => {
  const squares = table.map(([_, ...center]) =>
    center.reduce((s, c, k) => s + (z[k] - c) * (z[k] - c), 0));
  const least = squares.reduce((a, b) => Math.min(a, b), Infinity);
  const share = (j) => Math.exp(-0.5 * (squares[j] - least));
  const total = table.reduce((t, [weight], j) => t + weight * share(j), 0);
  return Math.log(total) - 0.5 * least;
};
