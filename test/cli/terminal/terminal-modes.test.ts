// Which modes of the local terminal are reset when a terminal session is left.
import t from 'tap'
import { createTerminalModes } from '../../../cli/terminal/terminal-modes.ts'

function getResets(...outputs: string[]): string[] {
  const modes = createTerminalModes()
  for (const output of outputs) modes.scan(Buffer.from(output))
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences
  return [...modes.getResetSequence().matchAll(/\x1b\[\?(\d+[hl])/g)].map(([, mode = '']) => mode)
}

t.test('resets the modes that programs have left', async (t) => {
  t.same(getResets('plain text'), [])
  t.same(getResets('\x1b[?1049h\x1b[?25l\x1b[?2004h'), ['25h', '2004l', '1049l'])
  t.same(getResets('\x1b[?1000;1006h'), ['1000l', '1006l'])
  t.same(getResets('\x1b[?7l'), ['7h'])
})

t.test('does not reset modes that programs have reset themselves', async (t) => {
  t.same(getResets('\x1b[?1049h\x1b[?1049l'), [])
  t.same(getResets('\x1b[?1049h\x1bc'), [])
})

t.test('ignores modes that need no reset, and other sequences', async (t) => {
  t.same(getResets('\x1b[?12h\x1b[?9999h\x1b[1049h\x1b[31m'), [])
})

t.test('finds sequences that are split between outputs at any byte', async (t) => {
  const sequence = 'a\x1b[?1002;1006hb'
  for (let split = 0; split <= sequence.length; split++)
    t.same(getResets(sequence.slice(0, split), sequence.slice(split)), ['1002l', '1006l'])
  t.same(getResets(...sequence), ['1002l', '1006l'])
})
