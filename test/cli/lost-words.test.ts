import t from 'tap'
import { lostWords } from '../../cli/follow/lost-words.ts'

t.test('a reader that loses output all the time is told once a second', async (t) => {
  const said: string[] = []
  let now = 0
  const words = lostWords(
    'fig',
    (sentence) => said.push(sentence),
    () => now,
  )
  words.lost('stdout', 10)
  t.same(said, ['box: 10 bytes of stdout before this are missing: fig no longer keeps them.'], 'at once')
  for (; now < 999; now += 111) words.lost('stdout', 1)
  words.lost('stderr', 5)
  t.equal(said.length, 1)
  now = 1000
  words.lost('stdout', 1)
  t.same(said.slice(1), [
    'box: 10 bytes of stdout in 10 places before this are missing: fig no longer keeps them.',
    'box: 5 bytes of stderr before this are missing: fig no longer keeps them.',
  ])
  words.lost('stdout', 7)
  words.end()
  t.same(said.slice(3), ['box: 7 bytes of stdout before this are missing: fig no longer keeps them.'])
  words.end()
  t.equal(said.length, 4)
})
