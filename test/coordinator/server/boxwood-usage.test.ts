// Wrong usage of the boxwood command: the message says what to type.
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import t from 'tap'

const MAIN = resolve(import.meta.dirname, '../../../coordinator/server/command-line/main.ts')

const MISTAKES: Record<string, RegExp> = {
  'credit acme':
    /^boxwood: missing required argument 'amount'\nUsage: boxwood credit \[options\] <workspace> <amount>, such as `boxwood credit ada@example\.com 25\.00`\nSee 'boxwood credit --help'\.\n$/,
  'credit acme ten': /^boxwood: .* It must be an amount in dollars, such as 25\.00\.\nUsage:/,
  'hold acme spam':
    /^boxwood: reason must be one of mining, cpu\.\nUsage: .*`boxwood hold ada@example\.com cpu`\n/,
  backup: /^boxwood: missing required argument 'file'\nUsage: boxwood backup \[options\] <file>\n/,
  'ledger chek':
    /^boxwood: unknown command 'chek'\n\(Did you mean check\?\)\nSee 'boxwood ledger --help'\.\n$/,
  nosuch: /^boxwood: unknown command 'nosuch'\nSee 'boxwood --help'\.\n$/,
}

for (const [words, message] of Object.entries(MISTAKES))
  t.test(words, async (t) => {
    const { NODE_OPTIONS: _, ...env } = process.env
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...words.split(' ')], {
      env,
      encoding: 'utf8',
    })
    t.match({ status, stdout, stderr }, { status: 2, stdout: '', stderr: message })
  })
