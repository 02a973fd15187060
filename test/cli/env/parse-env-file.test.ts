// .env files: what Docker Compose and dotenv read, without interpolation. What would be skipped or cut is refused.
import t from 'tap'
import { parseEnvFile } from '../../../cli/env/parse-env-file.ts'

/**
 * A file, and the variables of it. dotenv 17 reads the same, except that it keeps the backslash of \", \', \t, \$ and \\,
 * and cuts an unquoted value at a # without a space.
 */
const ACCEPTED: [string, Record<string, string>][] = [
  ['A=1', { A: '1' }],
  ['A=1\nB=2\n', { A: '1', B: '2' }],
  ['A=1\r\nB="2\r\n3"\r\n', { A: '1', B: '2\n3' }],
  ['A=1\rB=2', { A: '1', B: '2' }],
  ['', {}],
  ['\n \t\n# A=1\n  # "\n', {}],
  ['A=', { A: '' }],
  ['A= \nB=""\nC=\'\'\nD=``', { A: '', B: '', C: '', D: '' }],
  ['export A=1\nexport\tB=2\n export  C=3\nexport=4', { A: '1', B: '2', C: '3', export: '4' }],
  ['  A = 1  \n\tB\t=\t2', { A: '1', B: '2' }],
  ['A=1\nA=2', { A: '2' }],
  ['A=two words', { A: 'two words' }],
  ['A=a=b==', { A: 'a=b==' }],
  ['A={"k": "v"}', { A: '{"k": "v"}' }],
  [`A='{"k": "v"}'`, { A: '{"k": "v"}' }],
  ['A="{\\"k\\":\\"v\\"}"', { A: '{"k":"v"}' }],
  ['A="say \\"hi\\""', { A: 'say "hi"' }],
  ['A="{\\"re\\":\\"a\\\\\\\\b\\"}"', { A: '{"re":"a\\\\b"}' }],
  ["A='Let\\'s go!'", { A: "Let's go!" }],
  ['A=`it\'s "x"`', { A: `it's "x"` }],
  [`A="it's"\nB='say "x"'`, { A: "it's", B: 'say "x"' }],
  ["A=it's", { A: "it's" }],
  ['A=a"b"c', { A: 'a"b"c' }],
  ['A="a\\nb\\r\\tc"', { A: 'a\nb\r\tc' }],
  ["A='a\\nb'\nB=a\\nb", { A: 'a\\nb', B: 'a\\nb' }],
  ['A="C:\\dir"', { A: 'C:\\dir' }],
  ["A='C:\\\\'", { A: 'C:\\\\' }],
  ['A="x\\\\"', { A: 'x\\' }],
  [`A=$B\nB="$\{A}"\nC='$A'\nD="\\$A"`, { A: '$B', B: `$\{A}`, C: '$A', D: '$A' }],
  [
    'KEY="-----BEGIN KEY-----\nMIIE+/x==\n-----END KEY-----\n"\nB=1',
    { KEY: '-----BEGIN KEY-----\nMIIE+/x==\n-----END KEY-----\n', B: '1' },
  ],
  ["A='1\n#2\n\n3'\nB=`4\n5`", { A: '1\n#2\n\n3', B: '4\n5' }],
  ['A=1 # comment\nB=1\t# comment', { A: '1', B: '1' }],
  ['A="a # b" # comment\nB=\'a # b\'# comment\nC=`#`', { A: 'a # b', B: 'a # b', C: '#' }],
  ['A=a#b\nB=#fff\nC= # comment', { A: 'a#b', B: '#fff', C: '' }],
  ['A=https://x/#/y?z=%20', { A: 'https://x/#/y?z=%20' }],
  ['A=grün 🚀', { A: 'grün 🚀' }],
  ['constructor=1\nhasOwnProperty=2', { constructor: '1', hasOwnProperty: '2' }],
]

/** A file, the number of the line that is refused, and the problem. */
const REFUSED: [string, number, RegExp][] = [
  ['API_KEY: x', 1, /write NAME=VALUE instead/],
  ['A=1\n\nsome words\nB=2', 3, /not NAME=VALUE/],
  ['A=1\nB', 2, /not NAME=VALUE/],
  ['export A', 1, /not NAME=VALUE/],
  ['A B=1', 1, /not NAME=VALUE/],
  ['=1', 1, /not NAME=VALUE/],
  ['// A=1', 1, /not NAME=VALUE/],
  ['; A=1', 1, /not NAME=VALUE/],
  ['[section]', 1, /not NAME=VALUE/],
  ['set A=1', 1, /not NAME=VALUE/],
  ['{"A": "1"}', 1, /not NAME=VALUE/],
  ['\ufeffA=1', 1, /not NAME=VALUE|a name has/],
  ['A.B=1', 1, /a name has/],
  ['A-B=1', 1, /a name has/],
  ['1A=1', 1, /a name has/],
  ['"A"=1', 1, /a name has/],
  ['$A=1', 1, /a name has/],
  ['A+=1', 1, /a name has/],
  ['__proto__=1', 1, /a name has/],
  ['A="1', 1, /begins with ", and the closing quote is missing/],
  ["A=1\nB='tis the season\nC=2\n", 2, /begins with '/],
  ['A=`1', 1, /begins with `/],
  ['A="1\\"', 1, /begins with "/],
  ['A="1\n2\n3"\nB="4" 5', 4, /text after the closing quote/],
  ['A="1""2"', 1, /text after the closing quote/],
  ['A="1\n2" 3', 1, /text after the closing quote/],
  [`A="{"k":"v"}"`, 1, /text after the closing quote/],
  ["A='it's'", 1, /text after the closing quote/],
  ['KEY=-----BEGIN KEY-----\nMIIE\n-----END KEY-----', 2, /not NAME=VALUE/],
  ['A=1\r\n\r\nB 2\r\n', 3, /not NAME=VALUE/],
  ['A=1\nB=a\0b', 2, /NUL/],
  ['A="a\0b"', 1, /NUL/],
]

for (const [text, variables] of ACCEPTED)
  t.test(JSON.stringify(text), async (t) => t.strictSame(parseEnvFile(text), { variables }))

for (const [text, line, problem] of REFUSED)
  t.test(`refused: ${JSON.stringify(text)}`, async (t) => {
    t.match(parseEnvFile(text), { line, problem })
    t.notMatch(parseEnvFile(text), { problem: /secret/ })
  })

t.test('a large file', async (t) => {
  const line = `A="${'x'.repeat(50)}\\n" # y\n`
  const parsed = parseEnvFile(`${line.repeat(20_000)}words`)
  t.same(parsed, { line: 20_001, problem: 'this is not NAME=VALUE' })
})
