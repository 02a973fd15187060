// The commands that pages show to copy: a paste runs exactly the shown command.
import { readdirSync } from 'node:fs'
import t from 'tap'
import { formatCommandLine } from '../../../dashboard/data/command-line.ts'
import { formatShareCommand } from '../../../dashboard/data/ports.ts'
import { showHidden } from '../../../dashboard/data/visible-text.ts'
import { HOSTILE_TEXTS, toVisible } from '../../support/hostile-texts.ts'
import { pasteCommand } from '../../support/paste-commands.ts'
import { createTempDir } from '../../support/temp-dir.ts'

t.test('a shell gets hostile texts as single arguments', async (t) => {
  const dir = createTempDir(t, 'paste')
  const texts = Object.values(HOSTILE_TEXTS)
  const command = formatCommandLine('box', ...texts)
  for (const words of await pasteCommand(command, dir)) t.same(words, texts)
  const share = formatShareCommand('fig', '1;id', 'anyone', '3600')
  for (const words of await pasteCommand(share, dir))
    t.same(words, ['share', 'fig', '1;id', '--anyone', '--expires', '1h'])
  t.same(readdirSync(dir), [], 'nothing of the texts ran')
})

t.test('no character of a command is hidden, except line feeds at the end of a quoted word', async (t) => {
  for (const [trick, text] of Object.entries(HOSTILE_TEXTS)) {
    const command = formatCommandLine(text)
    t.equal(toVisible(command, '\n'), command, trick)
    t.equal(showHidden(text), toVisible(text), trick)
  }
  t.equal(showHidden('⚠️ ❤️'), '⚠️ ❤️', 'an emoji is no hidden character')
})
