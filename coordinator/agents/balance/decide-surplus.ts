// Decides how many agents a coordinator has too many. A pure function of the numbers of tunnels.

/** A coordinator may have this many times the average. */
const MAX_SHARE = 1.5
/** A smaller difference from the average does not matter. */
const MIN_SURPLUS = 20

/** How many more than the average. Negative: fewer. */
export const getExcess = (own: number, others: readonly number[]): number =>
  own - Math.ceil(others.reduce((sum, count) => sum + count, own) / (others.length + 1))

/** How many agents should connect to other coordinators. Then the coordinator has the average. */
export function decideSurplus(own: number, others: readonly number[]): number {
  const excess = getExcess(own, others)
  const average = own - excess
  return excess >= MIN_SURPLUS && own > MAX_SHARE * average ? excess : 0
}
