// A client that gets the screen instead of the output sees the same terminal as a client that got all output.
import t from 'tap'
import { createScreen, type Screen } from '../../../agent/terminal/screen.ts'
import { createSeededRandom } from '../../support/random.ts'
import { createTerminal, describeTerminal, writeTerminal } from '../../support/terminal-screen.ts'
import { waitUntil } from '../../support/wait-until.ts'

const parsed = (screen: Screen) => waitUntil('everything is parsed', () => screen.pendingBytes() === 0)

/** Compares a terminal that got everything with one that got the screen after `before`, and the rest. */
async function compare(
  size: { cols: number; rows: number },
  before: Buffer,
  after: string | Buffer,
  chunkBytes = 7,
) {
  const complete = createTerminal(size.cols, size.rows)
  const screen = createScreen(size, () => undefined)
  for (let at = 0; at < before.length; at += chunkBytes) screen.write(before.subarray(at, at + chunkBytes))
  await parsed(screen)
  const { bytes, offset, cols, rows } = screen.snapshot()
  screen.close()
  const restored = createTerminal(cols, rows)
  await writeTerminal(complete, before)
  await writeTerminal(restored, bytes)
  await writeTerminal(restored, before.subarray(offset))
  const pairs = [[describeTerminal(complete), describeTerminal(restored)]]
  for (const terminal of [complete, restored]) await writeTerminal(terminal, after)
  pairs.push([describeTerminal(complete), describeTerminal(restored)])
  return pairs
}

const EXAMPLES: Record<string, string> = {
  'lines, of which some are in the scrollback': Array.from({ length: 30 }, (_, i) => `line ${i}\r\n`).join(
    '',
  ),
  'lines that wrap': `${'a'.repeat(45)}\r\n${'日本'.repeat(13)}x\r\n\x1b[42m${'b'.repeat(50)}\x1b[m\r\n`,
  'a cursor after the last column': 'x'.repeat(20),
  'a cursor after a wide character in the last column': `${'x'.repeat(18)}日`,
  'attributes and colors':
    '\x1b[1;31mred\x1b[22;2mdim\x1b[0;4:3;58:2::1:2:3mwave\x1b[0;38;5;200;48;2;1;2;3mx\x1b[7;9;53my',
  'erased cells with a background': 'a\x1b[44m\x1b[K\r\n\x1b[3X\x1b[Cb\x1b[m\r\n',
  'the alternate screen, with the main screen behind it':
    'shell$ vim\r\n\x1b[31m\x1b[?1049h\x1b[2J\x1b[2;4r\x1b[3;5Htext\x1b[?1h\x1b[?2004h\x1b[?25l',
  'modes of mouse, keyboard and cursor':
    '\x1b[?1002h\x1b[?1006h\x1b[?1h\x1b=\x1b[?1004h\x1b[4h\x1b[?7l\x1b[5 q\x1b]0;title\x07',
  'line drawing characters': '\x1b(0lqqk\x1b(B\r\n\x1b)0\x0eqq',
  'scroll region and origin mode': '\x1b[2;4r\x1b[?6h\x1b[2;2Hx',
  'tab stops': '\x1b[3g\x1b[1;4H\x1bH\x1b[1;1H\tx',
  'a saved cursor': '\x1b[2;3H\x1b[31m\x1b7\x1b[4;1H\x1b[m',
}

for (const [name, output] of Object.entries(EXAMPLES)) {
  t.test(name, async (t) => {
    const [atScreen, later] = await compare({ cols: 20, rows: 5 }, Buffer.from(output), 'next\x1b8\tz\r\n')
    t.same(atScreen?.[1], atScreen?.[0])
    t.same(later?.[1], later?.[0])
  })
}

/** A text, and its width in columns. */
const WIDTHS: [name: string, text: string, columns: number][] = [
  ['emoji of Unicode 6 to 11', '🚀🔥🥰', 6],
  ['symbols with the presentation of emoji', '✅⏩', 4],
  ['symbols of one column', '⏺✔→', 3],
  ['a flag', '🇩🇪', 2],
  ['a family of a ZWJ sequence', '👨\u200d👩\u200d👧', 6],
  ['a skin tone', '👍🏽', 4],
  ['a variation selector', '❤\ufe0f', 1],
  ['CJK', '日本語', 6],
  ['full-width forms', 'ＡＢ', 4],
  ['Hangul', '한국', 4],
  ['combining marks', 'e\u0301a\u0308', 2],
  ['powerline symbols', '\ue0b0\ue0b1', 2],
]

for (const [name, text, columns] of WIDTHS)
  t.test(`the cursor after ${name}`, async (t) => {
    for (const prefix of ['', 'x'.repeat(17)]) {
      const before = Buffer.from(`${prefix}${text} ~ $ abc`)
      const [atScreen, later] = await compare({ cols: 20, rows: 5 }, before, 'X\x1b[2DY')
      t.same(atScreen?.[1], atScreen?.[0])
      t.same(later?.[1], later?.[0])
      if (prefix === '') t.equal(atScreen?.[1]?.cursor[0], columns + 8)
    }
  })

t.test('a leave of the alternate screen shows the main screen', async (t) => {
  const before = Buffer.from('one\r\n\x1b[32mtwo\x1b[?1049h\x1b[mfull screen')
  const [, later] = await compare({ cols: 20, rows: 5 }, before, '\x1b[?1049lthree')
  t.same(later?.[1], later?.[0])
  t.match(later?.[1]?.lines, ['one', /^t.*w.*o.*t.*h.*r.*e.*e/])
})

t.test('output that stops inside a sequence or a character', async (t) => {
  const output = Buffer.from('a\x1b[1;31mb\x1b]0;title\x1b\\\x1b[48;2;10;20;30mc日😀\x1bP+q\x1b\\d\x1b[0 q')
  for (let length = 0; length <= output.length; length++) {
    for (const chunkBytes of [1, 100]) {
      const [, later] = await compare(
        { cols: 20, rows: 5 },
        output.subarray(0, length),
        output.subarray(length),
        chunkBytes,
      )
      if (JSON.stringify(later?.[0]) !== JSON.stringify(later?.[1]))
        t.same(later?.[1], later?.[0], `${length}`)
    }
  }
})

t.test('random output', async (t) => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = createSeededRandom(seed)
    const int = (limit: number) => Math.floor(random() * limit)
    const size = { cols: 5 + int(25), rows: 2 + int(8) }
    const before = Buffer.from(randomOutput(int, size, 5 + int(80)))
    const [atScreen] = await compare(size, before, '', 1 + int(20))
    if (JSON.stringify(atScreen?.[0]) !== JSON.stringify(atScreen?.[1]))
      t.same(atScreen?.[1], atScreen?.[0], `seed ${seed}`)
  }
})

/** Everything that the screen restores. A half of a wide character, which an edit of the line leaves, is not restored. */
function randomOutput(
  int: (limit: number) => number,
  { cols, rows }: { cols: number; rows: number },
  items: number,
) {
  const hasWide = int(2) === 1
  const pick = <T>(from: readonly T[]): T => from[int(from.length)] as T
  const sgr = [
    0,
    1,
    2,
    3,
    4,
    '4:3',
    5,
    7,
    8,
    9,
    22,
    24,
    27,
    31,
    42,
    53,
    91,
    102,
    '38;5;200',
    '48;2;9;8;7',
    '58;5;3',
    39,
  ]
  const modes = [1, 6, 7, 25, 45, 66, 1000, 1002, 1003, 1004, 1006, 1049, 2004]
  const kinds = [
    () => 'x'.repeat(1 + int(cols * 2)),
    () => pick([...(hasWide ? ['日本', '🎉'] : []), 'abc ', 'é', 'e\u0301', '\t', '\b', '\r', '\n', '\r\n']),
    () => `\x1b[${1 + int(rows)};${1 + int(cols)}H`,
    () => `\x1b[${int(4)}${pick([...'ABCDEFGLMST', ...(hasWide ? '' : 'PX@')])}`,
    () => `\x1b[${pick(['0K', '1K', '2K', '0J', '2J', 'r', 'g'])}`,
    () => `\x1b[${pick(sgr)}m`,
    () => `\x1b[${1 + int(rows)};${1 + int(rows)}r`,
    () => `\x1b${pick(['7', '8', 'M', 'D', 'E', 'H', '(0', '(B', ')0'])}`,
    () => pick(['\x0e', '\x0f', '\x1b]2;title\x07', '\x1b[4l', hasWide ? '' : '\x1b[4h']),
    () => `\x1b[?${pick(modes)}${pick(['h', 'l'])}`,
    () => `\x1b[${int(7)} q`,
  ]
  return Array.from({ length: items }, () => pick(kinds)()).join('')
}

t.test('a sequence on which xterm throws does not stop the screen', async (t) => {
  const screen = createScreen({ cols: 10, rows: 3 }, () => undefined)
  screen.write(Buffer.from('\x1b[?1049h\x1b[3;10H\x1b[1J'))
  screen.write(Buffer.from('\x1b[Hok'))
  await parsed(screen)
  t.match(screen.snapshot().bytes.toString(), /ok/)
})

t.test('a resize takes effect after the output before it', async (t) => {
  const screen = createScreen({ cols: 10, rows: 3 }, () => undefined)
  screen.write(Buffer.from('x'.repeat(15)))
  screen.resize(20, 5)
  screen.write(Buffer.from('y'.repeat(10)))
  await parsed(screen)
  const { cols, rows, bytes } = screen.snapshot()
  t.match({ cols, rows }, { cols: 20, rows: 5 })
  // The line of the cursor is not reflowed.
  t.match(bytes.toString(), /x{10}\r\nx{5}y{10}/)
})

t.test('a screen continues from a snapshot, at another size', async (t) => {
  const before = createScreen({ cols: 10, rows: 3 }, () => undefined)
  before.write(Buffer.from('one\r\n\x1b[31mtwo'))
  await parsed(before)
  const snapshot = before.snapshot()
  const screen = createScreen({ cols: 20, rows: 5 }, () => undefined, { offset: 12, screen: snapshot })
  t.equal(screen.parsedOffset(), 12)
  screen.write(Buffer.from('-three'))
  await parsed(screen)
  const { offset, cols, rows, bytes } = screen.snapshot()
  t.match({ offset, cols, rows }, { offset: 18, cols: 20, rows: 5 })
  t.match(bytes.toString(), /one\r\n.*31mtwo-three/)
})
