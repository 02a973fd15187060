// The warning below the line that enrolls a machine.
import t from 'tap'
import { findUrlProblem } from '../../../cli/machines/url-problem.ts'

const lineOf = (url: string) => `curl -fsSL ${url}/install.sh | sh -s -- --token bxe_a`

t.test('warns of a URL that other machines cannot reach, or cannot trust', async (t) => {
  for (const url of ['http://127.0.0.1:7070', 'http://localhost:7070', 'https://[::1]:7070'])
    t.match(findUrlProblem(lineOf(url)), /only this machine can reach/, url)
  t.match(findUrlProblem(lineOf('http://10.0.0.5:7070')), /not https/)
  t.equal(findUrlProblem(lineOf('https://boxes.example.com')), null)
})
