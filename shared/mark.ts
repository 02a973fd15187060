// The mark of Boxwood: a box with rings like those of a tree. Shapes in a square of 32.

export const MARK_SIZE = 32
/** The box, in the colour of the mark. */
export const MARK_BOX = { x: 1, y: 1, width: 30, height: 30, rx: 8 } as const
/** The rings, in the colour of the background. */
export const MARK_RING = { x: 7.5, y: 8.5, width: 16, height: 16, rx: 4.5, strokeWidth: 2.5 } as const
export const MARK_CORE = { x: 12.5, y: 14, width: 6, height: 5.5, rx: 1.75 } as const

const shape = (attributes: Readonly<Record<string, number>>, paint: string): string =>
  `<rect ${Object.entries(attributes)
    .map(([name, value]) => `${name}='${value}'`)
    .join(' ')} ${paint}/>`

const { strokeWidth, ...ring } = MARK_RING

const draw = (attributes: string, colour: string, background: string): string =>
  `<svg ${attributes} viewBox='0 0 ${MARK_SIZE} ${MARK_SIZE}'>${shape(MARK_BOX, `fill='${colour}'`)}${shape(
    ring,
    `fill='none' stroke='${background}' stroke-width='${strokeWidth}'`,
  )}${shape(MARK_CORE, `fill='${background}'`)}</svg>`

/** The mark as a data URL, for <link rel="icon">. */
export const MARK_ICON: string = `data:image/svg+xml,${encodeURIComponent(
  draw("xmlns='http://www.w3.org/2000/svg'", '#1a7259', '#fff'),
)}`

/** The mark as an element of a page with page.css. */
export const MARK_ELEMENT: string = draw(
  "class='mark' width='40' height='40' aria-hidden='true'",
  'currentColor',
  'var(--background)',
)
