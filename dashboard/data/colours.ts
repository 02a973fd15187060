// The colours and attributes of output: the SGR sequences of a terminal (ECMA-48) as names of CSS classes.

export type Style = {
  /** One of the 16 colours of a terminal; null: the default. */
  foreground: number | null
  background: number | null
  attributes: ReadonlySet<string>
}

export const DEFAULT_STYLE: Style = { foreground: null, background: null, attributes: new Set() }

/** Concealed text has no attribute: it stays visible. */
const ATTRIBUTES: Record<number, string> = {
  1: 'bold',
  2: 'dim',
  3: 'italic',
  4: 'underline',
  7: 'inverse',
  9: 'strike',
}
const RESETS: Record<number, readonly string[]> = {
  22: ['bold', 'dim'],
  23: ['italic'],
  24: ['underline'],
  27: ['inverse'],
  29: ['strike'],
}

/** The colours of xterm, to which the others are reduced. */
const PALETTE: readonly Rgb[] = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
]
type Rgb = readonly [red: number, green: number, blue: number]

/** @param text the parameters of the sequence, such as `1;31` or `38:5:208` */
export function applySgr(style: Style, text: string): Style {
  let { foreground, background } = style
  const attributes = new Set(style.attributes)
  const params = text.split(';')
  for (let param = params.shift(); param !== undefined; param = params.shift()) {
    const [first, ...rest] = param.split(':')
    const code = Number(first)
    if (code === 38 || code === 48) {
      const colour = rest.length > 0 ? parseColour(rest, true) : takeColour(params)
      if (code === 38) foreground = colour
      else background = colour
    } else if (code === 0) {
      attributes.clear()
      foreground = null
      background = null
    } else if (code === 4 && rest[0] === '0') attributes.delete('underline')
    else if (code === 39) foreground = null
    else if (code === 49) background = null
    else if (ATTRIBUTES[code] !== undefined) attributes.add(ATTRIBUTES[code])
    else if (RESETS[code] !== undefined) for (const name of RESETS[code]) attributes.delete(name)
    else if (code >= 30 && code <= 37) foreground = code - 30
    else if (code >= 40 && code <= 47) background = code - 40
    else if (code >= 90 && code <= 97) foreground = code - 82
    else if (code >= 100 && code <= 107) background = code - 92
  }
  return { foreground, background, attributes }
}

/** Removes the parameters of the colour. */
function takeColour(params: string[]): number | null {
  const mode = params.shift()
  return parseColour([mode ?? '', ...params.splice(0, mode === '5' ? 1 : 3)], false)
}

/** @param hasSpace the form with colons may have the id of a colour space before the red part */
function parseColour([mode, ...values]: readonly string[], hasSpace: boolean): number | null {
  const numbers = values.map(Number)
  if (mode === '5') return reduceIndex(numbers[0] ?? 0)
  if (mode !== '2') return null
  const [red = 0, green = 0, blue = 0] = hasSpace && numbers.length > 3 ? numbers.slice(1) : numbers
  return reduceRgb([red, green, blue])
}

/** @param index of the 256 colours of xterm */
function reduceIndex(index: number): number {
  if (index < 16) return index
  if (index >= 232) {
    const level = 8 + 10 * (index - 232)
    return reduceRgb([level, level, level])
  }
  const level = (value: number) => (value === 0 ? 0 : 55 + 40 * value)
  const cube = index - 16
  return reduceRgb([level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)])
}

function reduceRgb(colour: Rgb): number {
  const distances = PALETTE.map((other) =>
    other.reduce((sum, value, index) => sum + (value - (colour[index] ?? 0)) ** 2, 0),
  )
  return distances.indexOf(Math.min(...distances))
}

/** The value of the attribute `class`; empty for plain text. */
export function formatClass({ foreground, background, attributes }: Style): string {
  const classes = [...attributes]
  if (foreground !== null) classes.push(`fg-${foreground}`)
  if (background !== null) classes.push(`bg-${background}`)
  return classes.join(' ')
}
