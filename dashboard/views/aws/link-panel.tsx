// A link that creates a role in AWS: until it is used, cancelled or has expired.
import type { AwsRole } from '../../../shared/api/federation.ts'
import type { OpenLink } from '../../data/aws.ts'
import { now } from '../../data/live.ts'
import { formatLocalTime } from '../../data/local-time.ts'
import { isWebUrl } from '../../data/ports.ts'
import { showHidden } from '../../data/visible-text.ts'
import { CopyButton } from '../command.tsx'

type LinkPanelProps = {
  link: OpenLink
  /** The role that it has connected. */
  role: AwsRole | undefined
  onCancel(): void
  onHide(): void
}

export function LinkPanel({ link, role, onCancel, onHide }: LinkPanelProps) {
  const { url, expiresAt } = link
  const expiry = Date.parse(expiresAt)
  const isOver = role !== undefined || now.value > expiry
  return (
    <section class="next-steps" aria-label="The link to AWS">
      <p role="status">
        {role !== undefined
          ? `The role is connected. Boxes use it as the profile ${showHidden(role.profile)}.`
          : isOver
            ? 'The link has expired. Create another one.'
            : `Waiting for the role, until ${formatLocalTime(expiry)}.`}
      </p>
      {!isOver && (
        <p>
          The link opens a filled-in stack in the console of AWS, in the account that is signed in there. It
          works once, and is shown only now.
        </p>
      )}
      <p class="buttons">
        {!isOver && isWebUrl(url) && (
          <>
            <a href={url} target="_blank" rel="noopener noreferrer">
              Open the console of AWS
            </a>
            <CopyButton text={url} label="the link" />
          </>
        )}
        {isOver ? (
          <button type="button" onClick={onHide}>
            Hide
          </button>
        ) : (
          <button type="button" onClick={onCancel}>
            Cancel the link
          </button>
        )}
      </p>
    </section>
  )
}
