// The output of commands as lines with colours: attack strings stay text, and the memory is bounded.
import t from 'tap'
import { cutLine, findLines, OutputLines } from '../../../dashboard/data/output-lines.ts'
import { showHiddenInOutput } from '../../../dashboard/data/visible-text.ts'

const ESC = '\u001b'

function parse(...parts: string[]) {
  const output = new OutputLines()
  for (const part of parts) output.push(part)
  output.end()
  return output.lines.map(({ segments }) => segments.map((segment) => [segment.class, segment.text]))
}

t.test('colours and attributes', async (t) => {
  const cases: [string, string][] = [
    ['31', 'fg-1'],
    ['1;91;44', 'bold fg-9 bg-4'],
    ['38;5;196', 'fg-9'],
    ['38;5;244', 'fg-8'],
    ['48;2;250;250;250', 'bg-15'],
    ['38:2::0:0:230', 'fg-4'],
    ['4:3', 'underline'],
    ['3;7;9', 'italic inverse strike'],
    ['8', ''],
    ['38;5', 'fg-0'],
    ['38', ''],
    ['999;', ''],
  ]
  for (const [sgr, name] of cases) t.same(parse(`${ESC}[${sgr}mx`), [[[name, 'x']]], sgr)
  t.same(parse(`${ESC}[1;31ma${ESC}[22mb${ESC}[39mc${ESC}[0md${ESC}[md`), [
    [
      ['bold fg-1', 'a'],
      ['fg-1', 'b'],
      ['', 'cdd'],
    ],
  ])
})

t.test('lines, and sequences that are cut between messages', async (t) => {
  t.same(parse('a\nb\r\n', '\nc'), [[['', 'a']], [['', 'b']], [], [['', 'c']]])
  t.same(parse('10%\r20%\r', '\nend'), [[['', '10%']], [['', '20%']], [['', 'end']]])
  t.same(parse(`a${ESC}`, '[3', '2mb'), [
    [
      ['', 'a'],
      ['fg-2', 'b'],
    ],
  ])
  t.same(parse(`a${ESC}[3`), [[['', `a${ESC}[3`]]], 'an incomplete sequence is text')
})

t.test('other sequences and hidden characters are visible', async (t) => {
  const [[[, text]]] = parse(`${ESC}]52;c;ZXZpbA==\u0007<b>\tx${ESC}[2J\u202e`) as [[[string, string]]]
  t.equal(showHiddenInOutput(text), '⟨U+001B⟩]52;c;ZXZpbA==⟨U+0007⟩<b>\tx⟨U+001B⟩[2J⟨U+202E⟩')
})

t.test('the first lines and the start of a long line are dropped', async (t) => {
  const output = new OutputLines(10)
  output.push('aaaa\nbbbb\ncccc\n')
  t.same(
    output.lines.map(({ number, length }) => [number, length]),
    [
      [2, 4],
      [3, 4],
    ],
  )
  t.ok(output.hasDropped)
  output.push(`${ESC}[31m${'d'.repeat(20)}`)
  t.match(output.lines, [{ number: 4, length: 10, segments: [{ text: 'd'.repeat(10), class: 'fg-1' }] }])
})

t.test('a line of 1 MiB is cut, and is found', async (t) => {
  const output = new OutputLines()
  output.push(`${'x'.repeat(1024 * 1024)}Needle`)
  const [line] = output.lines
  t.equal(line && cutLine(line, 4000)[0]?.text.length, 4000)
  t.same(findLines(output.lines, 'needle'), [0])
  t.same(findLines(output.lines, ''), [])
})
