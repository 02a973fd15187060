// The list of the tokens that enroll machines; finds and revokes them.
import type { Enrollment, EnrollmentList } from '../../shared/api/machines.ts'
import { REGIONS } from '../../shared/tiers.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { startBatch } from '../output/batch.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatAge } from '../output/format.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'

export const loadEnrollments = async (client: Client): Promise<Enrollment[]> =>
  (await client.request<EnrollmentList>('GET', '/machines')).enrollments

/** @param getCreator the text of createdBy */
export const createEnrollmentList = (getCreator: (createdBy: string) => string): List<Enrollment> => ({
  columns: [
    { header: 'ID', cell: ({ id }) => id },
    { header: 'NAME', cell: ({ name }) => name ?? '-' },
    { header: 'REGION', cell: ({ region }) => region },
    { header: 'CREATED BY', cell: ({ createdBy }) => getCreator(createdBy) },
    {
      header: 'EXPIRES',
      cell: ({ expiresAt }, now) =>
        `in ${formatAge(new Date(now).toISOString(), Math.max(now, Date.parse(expiresAt)))}`,
      isRelativeTime: true,
    },
  ],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: {
    name: { get: ({ name }) => name ?? '' },
    region: { get: ({ region }) => region, values: REGIONS },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? 'No matching tokens.'
      : 'No unused tokens. `box machine add` creates one; `box ls --filter kind=machine` lists the machines.',
})

/** @throws CliError when no token or several tokens match */
function findEnrollment(enrollments: readonly Enrollment[], typed: string): Enrollment {
  const named = enrollments.filter(({ name }) => name === typed)
  const [only] = named
  if (only !== undefined && named.length === 1) return only
  const found = findByPrefix(enrollments, typed, {
    getId: ({ id }) => id,
    describe: ({ name }) => name ?? '-',
    kind: 'tokens',
  })
  if (typed.startsWith('enr_') && found !== undefined) return found
  throw new CliError(
    EXIT.notFound,
    `No such unused token: '${sanitize(typed)}'. \`box machine ls\` lists the tokens; \`box rm\` deletes the box of a machine.`,
    { code: 'no_such_token' },
  )
}

/** Returns the exit code. */
export async function revokeEnrollments(
  { client }: Session,
  typed: string[],
  { json, quiet }: JsonOption & QuietOption,
): Promise<number> {
  const batch = startBatch(typed)
  const enrollments = await loadEnrollments(client)
  await batch.run([...new Set(typed)], async (text) => {
    const { id, name } = findEnrollment(enrollments, text)
    await client.request('DELETE', `/machines/${id}`)
    if (json) printJson({ id, name, revoked: true })
    else if (!quiet) printStderr(`${sanitize(name ?? id)}: revoked`)
  })
  return batch.exitCode
}
