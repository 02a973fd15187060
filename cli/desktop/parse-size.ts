// Parses the size of a desktop, such as 1280x800.
import { LIMITS } from '../../shared/limits.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

export type Size = { width: number; height: number }

const { width: WIDTH, height: HEIGHT } = LIMITS.desktop

/** @throws CliError (usage) */
export function parseSize(text: string): Size {
  const [width = 0, height = 0] = /^(\d{1,5})[x×](\d{1,5})$/i.exec(text)?.slice(1).map(Number) ?? []
  const isValid = width >= WIDTH.min && width <= WIDTH.max && height >= HEIGHT.min && height <= HEIGHT.max
  if (isValid) return { width, height }
  throw new CliError(
    EXIT.usage,
    `--size must be WIDTHxHEIGHT in pixels, such as 1280x800, from ${WIDTH.min}x${HEIGHT.min} to ${WIDTH.max}x${HEIGHT.max}.`,
  )
}
