// The name of a box whose creator gave none: a fruit.
import { LIMITS } from '../../shared/limits.ts'

export const FRUITS: readonly string[] = [
  ...['acerola', 'ackee', 'apple', 'apricot', 'avocado', 'banana', 'bilberry', 'blackberry', 'blueberry'],
  ...['breadfruit', 'cantaloupe', 'carambola', 'cherimoya', 'cherry', 'clementine', 'cloudberry', 'coconut'],
  ...['cranberry', 'currant', 'damson', 'date', 'dragonfruit', 'durian', 'elderberry', 'feijoa', 'fig'],
  ...['gooseberry', 'grape', 'grapefruit', 'guava', 'honeydew', 'huckleberry', 'jackfruit', 'jujube', 'kiwi'],
  ...['kumquat', 'lemon', 'lime', 'longan', 'loquat', 'lychee', 'mandarin', 'mango', 'mangosteen', 'medlar'],
  ...['melon', 'mirabelle', 'mulberry', 'nectarine', 'olive', 'orange', 'papaya', 'passionfruit', 'peach'],
  ...['pear', 'persimmon', 'pineapple', 'plum', 'pomegranate', 'pomelo', 'quince', 'rambutan', 'raspberry'],
  ...['redcurrant', 'salak', 'satsuma', 'soursop', 'starfruit', 'strawberry', 'tamarillo', 'tangerine'],
  ...['ugli', 'watermelon', 'yuzu'],
]

/**
 * A free name: the fruit itself, or with the lowest number from 2 on when every box so named is taken.
 * @param random from 0 up to, not including, 1: which fruit.
 */
export function freeName(taken: ReadonlySet<string>, random: number): string {
  const start = Math.floor(random * FRUITS.length)
  const inOrder = [...FRUITS.slice(start), ...FRUITS.slice(0, start)]
  const free = inOrder.find((fruit) => !taken.has(fruit))
  if (free) return free
  const fruit = inOrder[0] ?? 'box'
  for (let number = 2; ; number++) {
    const name = `${fruit}-${number}`
    if (!taken.has(name)) return name.slice(0, LIMITS.boxNameLength)
  }
}
