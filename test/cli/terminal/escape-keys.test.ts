// Escape sequences that are typed in a terminal session.
import t from 'tap'
import { createEscapeParser, type EscapeAction } from '../../../cli/terminal/escape-keys.ts'

/** The bytes sent and the actions, for inputs that arrive one after another. */
function type(...inputs: string[]): { sent: string; actions: EscapeAction[] } {
  const parser = createEscapeParser()
  const actions: EscapeAction[] = []
  let sent = ''
  for (const input of inputs) {
    for (let unparsed = Buffer.from(input); unparsed.length > 0; ) {
      const { bytes, action, rest } = parser.parse(unparsed)
      sent += bytes.toString()
      if (action !== null) actions.push(action)
      unparsed = Buffer.from(rest)
    }
  }
  return { sent, actions }
}

t.test('a sequence works at the start and after a newline', async (t) => {
  t.same(type('~.'), { sent: '', actions: ['disconnect'] })
  t.same(type('ls\r~d'), { sent: 'ls\r', actions: ['detach'] })
  t.same(type('ls\n~d'), { sent: 'ls\n', actions: ['detach'] })
})

t.test('a sequence may be split between inputs', async (t) => {
  t.same(type('ls\r', '~', '.'), { sent: 'ls\r', actions: ['disconnect'] })
  t.same(type('~', 'x'), { sent: '~x', actions: [] })
})

t.test('a tilde inside a line is an ordinary character', async (t) => {
  t.same(type('cd ~.\r'), { sent: 'cd ~.\r', actions: [] })
  t.same(type('a~d'), { sent: 'a~d', actions: [] })
})

t.test('~~ sends one tilde, which starts no further sequence', async (t) => {
  t.same(type('~~.'), { sent: '~.', actions: [] })
  t.same(type('~~/bin\r'), { sent: '~/bin\r', actions: [] })
})

t.test('other keys after a tilde are sent with it', async (t) => {
  t.same(type('~/bin\r'), { sent: '~/bin\r', actions: [] })
  t.same(type('~\r~d'), { sent: '~\r', actions: ['detach'] })
})

t.test('after the help, another sequence works without a newline', async (t) => {
  t.same(type('~?~.'), { sent: '', actions: ['help', 'disconnect'] })
})
