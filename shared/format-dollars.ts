// Formats amounts and prices for messages.

const MICROS_PER_DOLLAR = 1_000_000

/** Such as $4.20, -$0.05, or <$0.01 for an amount below a cent. */
export function formatDollars(micros: number): string {
  const amount = Math.abs(micros) / MICROS_PER_DOLLAR
  const isSmall = amount > 0 && amount < 0.01
  return `${micros < 0 ? '-' : ''}${isSmall ? '<$0.01' : `$${amount.toFixed(2)}`}`
}

/** The price of an hour may be less than a cent: with three digits of it, such as $0.00137. */
export function formatPrice(micros: number): string {
  const amount = micros / MICROS_PER_DOLLAR
  if (amount === 0 || amount >= 0.1) return formatDollars(micros)
  const digits = 2 - Math.floor(Math.log10(Math.abs(amount)))
  return `$${amount.toFixed(digits).replace(/(\.\d\d\d*?)0+$/, '$1')}`
}
