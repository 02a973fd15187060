// Formats amounts for messages.

const MICROS_PER_DOLLAR = 1_000_000

/** Such as $4.20 or -$0.05. Amounts below a cent have up to six decimals. */
export function formatDollars(micros: number): string {
  const amount = Math.abs(micros) / MICROS_PER_DOLLAR
  const isSmall = amount > 0 && amount < 0.01
  return `${micros < 0 ? '-' : ''}$${isSmall ? amount.toFixed(6).replace(/0+$/, '') : amount.toFixed(2)}`
}
