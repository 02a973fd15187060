// Wrapping of the startup banner.
import t from 'tap'
import { wrapText } from '../../../coordinator/server/wrap-text.ts'

t.test('wraps between words, and keeps commands and long words whole', async (t) => {
  t.equal(wrapText('one two three four', 9), 'one two\nthree\nfour')
  t.equal(wrapText('one two', 7), 'one two')
  t.equal(wrapText('one two', 0), 'one two', 'a terminal of unknown width')
  t.equal(wrapText('http://127.0.0.1:7070 x', 10), 'http://127.0.0.1:7070\nx')
  const command = '  BOXWOOD_DATA=/srv/boxwood box exec fig -- uname -a'
  t.equal(wrapText(`run this command:\n\n${command}\n`, 10), `run this\ncommand:\n\n${command}\n`)
})
