// The texts of secrets, and the forms that create and change one.
import t from 'tap'
import { nameField } from '../../../dashboard/data/field-names.ts'
import { SECRET_PRESETS } from '../../../dashboard/data/secret-presets.ts'
import {
  acceptsNewSecret,
  describeBroker,
  formatChangeCommand,
  formatCreateCommand,
  formatGrantCommand,
  formatGrants,
  formatHosts,
  formatLocations,
  toCreateRequest,
  toPatchRequest,
  warnOfNewHosts,
} from '../../../dashboard/data/secrets.ts'
import { createSecretRequestSchema, type Secret, type SecretGrant } from '../../../shared/api/secrets.ts'
import { validationMessage } from '../../../shared/validation-message.ts'

const GRANTEES = {
  boxes: [{ id: 'b1', hostname: 'fig' }],
  members: [
    { id: 'u1', email: 'ada@example.com' },
    { id: 'u2', email: null },
  ],
}
const SECRET = { name: 'TOKEN', description: 'for tests', hosts: ['api.example.com'] } as Secret

t.test('each service of the form can be stored as it is', async (t) => {
  for (const { variable, label, hosts } of SECRET_PRESETS)
    t.ok(createSecretRequestSchema.safeParse({ name: variable, value: 'v', hosts }).success, label)
  t.equal(new Set(SECRET_PRESETS.map(({ variable }) => variable)).size, SECRET_PRESETS.length)
})

t.test('an error names the field as the form labels it', async (t) => {
  const fields = [
    { name: 'hosts', label: 'Hosts' },
    { name: 'name', label: 'Name' },
  ]
  const result = createSecretRequestSchema.safeParse({
    name: 'A',
    value: 'v',
    hosts: ['a.example', 5],
  })
  const message = validationMessage(result.error?.issues ?? [])
  t.match(message, /^hosts\[1\] must be /)
  t.match(nameField(message, fields), /^Hosts, line 2, must be /)
  t.equal(nameField('hosts[0] "a b" must be a host', fields), 'Hosts, line 1, "a b" must be a host')
  t.equal(nameField('name is required', fields), 'Name is required')
  for (const other of ['value is required', 'name fig is taken', 'The name is taken.'])
    t.equal(nameField(other, fields), other)
})

t.test('who may use a secret, and for which hosts', async (t) => {
  const grant = (fields: Partial<SecretGrant>) =>
    ({ id: 'g', boxId: null, hostname: null, userId: null, email: null, ...fields }) as SecretGrant
  const grants = [
    grant({ boxId: 'b1', hostname: 'fig' }),
    grant({ userId: 'u1', email: 'ada@example.com' }),
    grant({ boxId: 'b2' }),
    grant({ userId: 'u2' }),
  ]
  t.equal(formatGrants({ scope: 'granted', grants }), 'fig, boxes of ada@example.com, b2 and 1 more')
  t.equal(formatGrants({ scope: 'granted', grants: grants.slice(3) }), 'boxes of u2')
  t.equal(formatGrants({ scope: 'workspace', grants: [] }), 'all of the workspace that are not restricted')
  t.equal(formatHosts([]), 'none: used nowhere')
  t.equal(formatHosts(['a.example', '*.b.example']), 'a.example, *.b.example')
  t.equal(formatHosts(['a', 'b', 'c', 'd', 'e']), 'a, b, c and 2 more')
  t.equal(formatLocations({ in: ['header', 'body'] }), 'header, body')
})

t.test('the form of a new secret', async (t) => {
  const values = { name: 'TOKEN', value: 'x', hosts: ' a.example \n\n*.b.example', description: '' }
  const granted = { ...values, boxIds: 'b1\nb2', userIds: 'u1\nu2' }
  t.ok(acceptsNewSecret(values))
  for (const field of ['name', 'value', 'hosts']) t.notOk(acceptsNewSecret({ ...values, [field]: '' }), field)
  t.same(toCreateRequest(values), { name: 'TOKEN', value: 'x', hosts: ['a.example', '*.b.example'] })
  t.match(toCreateRequest(granted), {
    grants: [{ boxId: 'b1' }, { boxId: 'b2' }, { userId: 'u1' }, { userId: 'u2' }],
  })
  t.equal(
    formatCreateCommand(granted, GRANTEES),
    "box secrets set TOKEN --host a.example --host '*.b.example' --grant fig --grant b2 --grant ada@example.com --grant u2",
  )
  t.equal(formatGrantCommand(SECRET, { boxIds: 'b1' }, GRANTEES), 'box secrets grant TOKEN fig')
  t.equal(formatGrantCommand(SECRET, {}, GRANTEES), 'box secrets grant TOKEN BOX')
})

t.test('the form of a change has the changed fields only', async (t) => {
  const values = { hosts: 'api.example.com', description: 'for tests' }
  t.equal(toPatchRequest(SECRET, values), null)
  t.equal(formatChangeCommand(SECRET, values), 'box secrets show TOKEN')
  t.equal(toPatchRequest(SECRET, { ...values, hosts: ' ' }), null, 'not all hosts can be removed')
  t.same(toPatchRequest(SECRET, { ...values, description: '' }), { description: null })
  t.equal(
    formatChangeCommand(SECRET, { ...values, description: '' }),
    "box secrets set TOKEN --keep-value --description ''",
  )
  const widened = { ...values, hosts: 'api.example.com\nb.example' }
  t.same(toPatchRequest(SECRET, widened), { hosts: ['api.example.com', 'b.example'] })
  t.equal(warnOfNewHosts(SECRET, widened), 'The value is disclosed to b.example.')
  t.equal(warnOfNewHosts(SECRET, values), null)
})

t.test('whether secrets work on a box', async (t) => {
  const test = { message: null, checkedAt: null }
  t.match(describeBroker({ ...test, state: 'ready' }), /^Secrets work/)
  t.match(
    describeBroker({ ...test, state: 'failed', message: 'refused' }),
    /do not work on the box: refused$/,
  )
  t.match(describeBroker({ ...test, state: 'failed' }), /the test of its agent has failed$/)
  t.match(describeBroker({ ...test, state: 'unknown' }), /^It is not known/)
})
