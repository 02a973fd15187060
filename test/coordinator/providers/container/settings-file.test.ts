// The file with the variables of the agent, read by a shell.
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { formatSettings } from '../../../../coordinator/providers/container/settings-file.ts'

t.test('a shell reads the same values', async (t) => {
  const variables = { A: 'it\'s $HOME `id` "x"', B: 'two\nlines', C: '' }
  const script = `${formatSettings(variables)}printf '%s|' "$A" "$B" "$C"`
  t.equal(
    execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }),
    `${Object.values(variables).join('|')}|`,
  )
})
