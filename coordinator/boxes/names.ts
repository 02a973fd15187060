// Picks a name, a fruit, for a box that is created without one.
import { LIMITS } from '../../shared/limits.ts'

/** The list omits cherry, fig, kiwi, lime and plum: examples in the documentation and tests create boxes with these names. */
export const FRUITS: readonly string[] = [
  ...['acerola', 'ackee', 'apple', 'apricot', 'avocado', 'banana', 'bilberry', 'blackberry', 'blueberry'],
  ...['breadfruit', 'cantaloupe', 'carambola', 'cherimoya', 'clementine', 'cloudberry', 'coconut'],
  ...['cranberry', 'currant', 'damson', 'date', 'dragonfruit', 'durian', 'elderberry', 'feijoa'],
  ...['gooseberry', 'grape', 'grapefruit', 'guava', 'honeydew', 'huckleberry', 'jackfruit', 'jujube'],
  ...['kumquat', 'lemon', 'longan', 'loquat', 'lychee', 'mandarin', 'mango', 'mangosteen', 'medlar'],
  ...['melon', 'mirabelle', 'mulberry', 'nectarine', 'olive', 'orange', 'papaya', 'passionfruit', 'peach'],
  ...['pear', 'persimmon', 'pineapple', 'pomegranate', 'pomelo', 'quince', 'rambutan', 'raspberry'],
  ...['redcurrant', 'salak', 'satsuma', 'soursop', 'starfruit', 'strawberry', 'tamarillo', 'tangerine'],
  ...['ugli', 'watermelon', 'yuzu'],
]

/**
 * Picks a name that is not taken: a fruit or, when all fruits are taken, a fruit with the lowest free number from 2 on.
 * @param random selects the fruit: 0 or more, less than 1.
 */
export function pickFreeName(taken: ReadonlySet<string>, random: number): string {
  const start = Math.floor(random * FRUITS.length)
  const candidates = [...FRUITS.slice(start), ...FRUITS.slice(0, start)]
  const free = candidates.find((fruit) => !taken.has(fruit))
  if (free) return free
  const fruit = candidates[0] ?? 'box'
  for (let number = 2; ; number++) {
    const name = `${fruit}-${number}`
    if (!taken.has(name)) return name.slice(0, LIMITS.boxNameLength)
  }
}
