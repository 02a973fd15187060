// API keys are recognised by their form, and mistyped keys by their checksum.
import t from 'tap'
import { newApiKey } from '../../shared/api-key.ts'
import { isApiKey, isMistypedApiKey } from '../../shared/api-key-checksum.ts'

t.test('a new key is recognised, and each change of one character is a typing error', async (t) => {
  const key = newApiKey()
  t.match(key, /^dcp_[0-9A-Za-z]{38}$/)
  t.not(newApiKey(), key)
  t.ok(isApiKey(key))
  t.notOk(isMistypedApiKey(key))
  for (let i = 'dcp_'.length; i < key.length; i += 1) {
    const mistyped = `${key.slice(0, i)}${key[i] === 'a' ? 'b' : 'a'}${key.slice(i + 1)}`
    t.ok(isMistypedApiKey(mistyped), `character ${i}`)
    t.notOk(isApiKey(mistyped))
  }
})

t.test('the checksum does not change between versions', async (t) => {
  for (const text of [`${'0'.repeat(32)}2wjyrI`, `${'aA0'.repeat(10)}zz1cNtwl`]) t.ok(isApiKey(`dcp_${text}`))
})

t.test('a key of an earlier version has no checksum', async (t) => {
  const earlier = `dcp_${'0123456789abcdef'.repeat(3)}`
  t.ok(isApiKey(earlier))
  t.notOk(isMistypedApiKey(earlier))
})

t.test('other texts are neither keys nor mistyped keys', async (t) => {
  for (const text of [
    '',
    'dcp_',
    'dcp_wrong',
    'dct_0',
    newApiKey().slice(0, -1),
    `${newApiKey()}0`,
    ` ${newApiKey()}`,
  ]) {
    t.notOk(isApiKey(text), text)
    t.notOk(isMistypedApiKey(text), text)
  }
})
