// The SGR sequence that sets the attributes of a terminal cell.
import type { Attributes } from './xterm-internals.ts'

/** The bits of a color's mode. */
const MODE_MASK = 0x3000000
const MODE_16_COLORS = 0x1000000
const MODE_RGB = 0x3000000

/** Starts with a reset, so that the result does not depend on the attributes before. */
export function sgr(attributes: Attributes): string {
  const style = attributes.getUnderlineStyle()
  const flags: [isSet: unknown, parameter: string][] = [
    [attributes.isBold(), '1'],
    [attributes.isDim(), '2'],
    [attributes.isItalic(), '3'],
    [style > 0, style === 1 ? '4' : `4:${style}`],
    [attributes.isBlink(), '5'],
    [attributes.isInverse(), '7'],
    [attributes.isInvisible(), '8'],
    [attributes.isStrikethrough(), '9'],
    [attributes.isOverline(), '53'],
  ]
  const parameters = flags.filter(([isSet]) => isSet).map(([, parameter]) => parameter)
  const { fg, bg, extended } = attributes
  parameters.push(...color(fg, 30, 38), ...color(bg, 40, 48), ...underlineColor(extended.underlineColor))
  return `\x1b[${['0', ...parameters].join(';')}m`
}

/** The SGR sequence of erased cells, which have only a background. */
export const backgroundSgr = ({ bg }: Attributes): string => `\x1b[${['0', ...color(bg, 40, 48)].join(';')}m`

export const hasBackground = ({ bg }: Attributes): boolean => (bg & MODE_MASK) !== 0

const rgb = (value: number): number[] => [(value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff]

/** @param basic the parameter of the first of 16 colors @param extended the parameter before a larger palette */
function color(value: number, basic: number, extended: number): string[] {
  const index = value & 0xff
  switch (value & MODE_MASK) {
    case 0:
      return []
    case MODE_16_COLORS:
      return [String(index < 8 ? basic + index : basic + 60 + index - 8)]
    case MODE_RGB:
      return [[extended, 2, ...rgb(value)].join(';')]
    default:
      return [`${extended};5;${index}`]
  }
}

function underlineColor(value: number): string[] {
  const mode = value & MODE_MASK
  if (mode === 0) return []
  return [mode === MODE_RGB ? `58:2::${rgb(value).join(':')}` : `58:5:${value & 0xff}`]
}
