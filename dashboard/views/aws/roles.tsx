// The table of the AWS roles. Owners verify and disconnect them.
import type { AwsRole, AwsRoleList } from '../../../shared/api/federation.ts'
import { describeCreator } from '../../data/aws.ts'
import { showHidden } from '../../data/visible-text.ts'
import { Age } from '../age.tsx'
import { TrustPolicy } from './trust-policy.tsx'

type RolesProps = {
  list: AwsRoleList
  /** Of the members, by id. */
  names: ReadonlyMap<string, string>
  /** Null: not an action of the user. */
  onVerify: ((role: AwsRole) => void) | null
  onDisconnect: ((role: AwsRole) => void) | null
}

export function Roles(props: RolesProps) {
  const { list, onVerify, onDisconnect } = props
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col">Profile</th>
            <th scope="col">Role</th>
            <th scope="col">Verified</th>
            <th scope="col">Connected</th>
            {(onVerify || onDisconnect) && <th scope="col">Actions</th>}
          </tr>
        </thead>
        <tbody>
          {list.roles.map((role) => (
            <RoleRow key={role.id} {...props} role={role} />
          ))}
        </tbody>
      </table>
      <p>
        {list.roles.length} of at most {list.limit} roles.
      </p>
    </>
  )
}

function RoleRow({ role, list, names, onVerify, onDisconnect }: RolesProps & { role: AwsRole }) {
  const { roleArn, createdAt, createdBy } = role
  const profile = showHidden(role.profile)
  return (
    <tr>
      <th scope="row">{profile}</th>
      <td data-label="Role">{showHidden(roleArn)}</td>
      <td data-label="Verified">
        <Verification role={role} list={list} />
      </td>
      <td data-label="Connected">
        <Age at={createdAt} /> by {showHidden(describeCreator(createdBy, names))}
      </td>
      {(onVerify || onDisconnect) && (
        <td>
          <div class="actions">
            {onVerify && (
              <button type="button" onClick={() => onVerify(role)} aria-label={`Verify ${profile}`}>
                Verify
              </button>
            )}
            {onDisconnect && (
              <button type="button" onClick={() => onDisconnect(role)} aria-label={`Disconnect ${profile}`}>
                Disconnect
              </button>
            )}
          </div>
        </td>
      )}
    </tr>
  )
}

function Verification({ role, list }: { role: AwsRole; list: AwsRoleList }) {
  const { verifiedAt, verifiedArn, verifyError, roleArn } = role
  const { issuer } = list
  if (verifyError !== null)
    return (
      <>
        <span class="problem">{showHidden(verifyError)}</span>
        {issuer !== null && <TrustPolicy facts={{ ...list, issuer }} roleArn={roleArn} />}
      </>
    )
  if (verifiedAt === null) return <>not yet</>
  return (
    <>
      <Age at={verifiedAt} /> as {showHidden(verifiedArn ?? 'unknown')}
    </>
  )
}
