// Says how many items a list does not show, with a button that shows those that are loaded.

/** @param loaded of all `total` items; those that are not loaded cannot be shown */
export function ShowMore(props: { shown: number; loaded: number; total: number; onShow(): void }) {
  const { shown, loaded, total, onShow } = props
  if (shown >= total) return null
  return (
    <p>
      {total - shown} more are not shown.{' '}
      {shown < loaded && (
        <button type="button" onClick={onShow}>
          Show {loaded - shown} more
        </button>
      )}
    </p>
  )
}
