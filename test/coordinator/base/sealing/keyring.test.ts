// Encrypted values: what opens them, and what does not.
import { inspect } from 'node:util'
import { test } from 'tap'
import { SealedValueError } from '../../../../coordinator/base/sealing/keyring.ts'
import { newMasterKey } from '../../../../coordinator/base/sealing/master-key.ts'
import { createKeyring } from '../../../../coordinator/base/sealing/master-keyring.ts'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'

const CONTEXT = { workspaceId: 'ws_1', rowId: 'sec_1' }
const VALUE = 'päss.word "value"\u0000'

function createKeyrings() {
  const [oldKey, newKey] = [newMasterKey(), newMasterKey()]
  return {
    oldKey,
    newKey,
    before: createKeyring([oldKey]),
    rotated: createKeyring([newKey, oldKey]),
    after: createKeyring([newKey]),
  }
}

test('a value is opened for its row only', (t) => {
  const { before, oldKey } = createKeyrings()
  const { sealed, keyId } = before.seal(new SecretValue(VALUE), CONTEXT)
  t.equal(keyId, oldKey.id)
  t.match(sealed, new RegExp(`^v1\\.${oldKey.id}\\.[\\w-]{80}\\.[\\w-]+$`))
  t.equal(before.open(sealed, CONTEXT).reveal(), VALUE)
  t.not(before.seal(new SecretValue(VALUE), CONTEXT).sealed, sealed, 'two encryptions of a value differ')
  t.equal(before.open(before.seal(new SecretValue(''), CONTEXT).sealed, CONTEXT).reveal(), '')
  for (const context of [
    { ...CONTEXT, rowId: 'sec_2' },
    { ...CONTEXT, workspaceId: 'ws_2' },
    { workspaceId: 'ws_1","sec_1', rowId: '' },
  ])
    for (const use of [before.open, before.rewrap])
      t.throws(() => use(sealed, context), SealedValueError, JSON.stringify(context))
  t.end()
})

test('the text of a value cannot be changed', (t) => {
  const { before } = createKeyrings()
  const { sealed } = before.seal(new SecretValue(VALUE), CONTEXT)
  const other = before.seal(new SecretValue('other'), CONTEXT).sealed.split('.')
  const parts = sealed.split('.')
  const withPart = (index: number, part: string) => parts.with(index, part).join('.')
  const [, , wrapped = '', payload = ''] = parts
  const flip = (part: string, index: number) => {
    const bytes = Buffer.from(part, 'base64url')
    bytes[index] = (bytes[index] ?? 0) ^ 1
    return bytes.toString('base64url')
  }
  const changed = {
    empty: '',
    'other version': withPart(0, 'v2'),
    'other key id': withPart(1, 'k0'),
    'key id with a dot': withPart(1, 'a.b'),
    'data key of another value': withPart(2, other[2] ?? ''),
    'payload of another value': withPart(3, other[3] ?? ''),
    'no data key': withPart(2, ''),
    'no payload': withPart(3, ''),
    'a fifth part': `${sealed}.`,
    padding: `${sealed}=`,
    whitespace: `${sealed}\n`,
    'characters that are not base64url': withPart(3, `${payload.slice(0, 8)}*${payload.slice(8)}`),
    'standard base64': withPart(3, `+/${payload.slice(2)}`),
    'short payload': withPart(3, payload.slice(0, 36)),
    ...Object.fromEntries(
      [0, 12, 28].map((index) => [`data key, bit of byte ${index}`, withPart(2, flip(wrapped, index))]),
    ),
    ...Object.fromEntries(
      [0, 12, 28].map((index) => [`payload, bit of byte ${index}`, withPart(3, flip(payload, index))]),
    ),
  }
  for (const [name, text] of Object.entries(changed))
    t.throws(() => before.open(text, CONTEXT), SealedValueError, name)
  t.end()
})

test('rewrap() replaces the data key and keeps the payload', (t) => {
  const { before, rotated, after, newKey, oldKey } = createKeyrings()
  const { sealed } = before.seal(new SecretValue(VALUE), CONTEXT)
  t.equal(rotated.open(sealed, CONTEXT).reveal(), VALUE, 'an old key opens')
  const rewrapped = rotated.rewrap(sealed, CONTEXT)
  t.equal(rewrapped.keyId, newKey.id)
  t.equal(rewrapped.sealed.split('.')[3], sealed.split('.')[3])
  t.equal(after.open(rewrapped.sealed, CONTEXT).reveal(), VALUE)
  t.throws(() => after.open(sealed, CONTEXT), { message: new RegExp(`master key ${oldKey.id}.* is missing`) })
  t.strictSame(rotated.keyIds, [newKey.id, oldKey.id])
  t.same([rotated.has(oldKey.id), after.has(oldKey.id)], [true, false])
  // The id of a key is not a secret: a file can have another key with the same id.
  const impostor = createKeyring([{ ...newMasterKey(), id: newKey.id }])
  t.throws(() => impostor.open(rewrapped.sealed, CONTEXT), SealedValueError)
  t.end()
})

test('neither a value nor a key is shown', (t) => {
  const value = new SecretValue('hidden-value')
  const { before, oldKey } = createKeyrings()
  const { sealed } = before.seal(value, CONTEXT)
  const keyText = oldKey.line.split(' ')[1] ?? ''
  const shown = [
    JSON.stringify({ value, before }),
    inspect({ value, before, key: oldKey.key }, { depth: 9, showHidden: true }),
    `${value}`,
    String(value),
    inspect(t.throws(() => before.open(sealed, { ...CONTEXT, rowId: 'x' }))),
  ].join('\n')
  t.notMatch(shown, /hidden-value/)
  t.notOk(shown.includes(keyText))
  t.end()
})
