// docs/audit.md and the OpenAPI description list every kind of audit events.
import { readFileSync } from 'node:fs'
import t from 'tap'
import { describeAuditKinds } from '../../shared/api/audit.ts'
import { AUDIT_KINDS } from '../../shared/audit-kinds.ts'
import { AUDIT_PAGE, renderAuditPage } from '../support/audit-kinds-page.ts'

const page = readFileSync(AUDIT_PAGE, 'utf8')

t.test('docs/audit.md is up to date', async (t) => {
  t.equal(page, renderAuditPage(page), 'otherwise run `npm run docs:audit`')
  for (const kind of AUDIT_KINDS) t.ok(page.includes(`| \`${kind}\` | `), kind)
})

t.test('the OpenAPI description names every kind', async (t) => {
  for (const kind of AUDIT_KINDS)
    t.ok(
      describeAuditKinds()
        .split(/[ ,\n]+|\.(?=\n|$)/)
        .includes(kind),
      kind,
    )
})

t.test('a page without its sections is not accepted', async (t) => {
  t.throws(() => renderAuditPage(page.replace('<!-- begin client kinds -->', '')), /no markers/)
})
