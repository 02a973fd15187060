// What a page shows until its content is loaded: as high as the content, and without a text that then disappears.

/** @param label for screen readers */
export const Skeleton = ({ label, rows = 6 }: { label: string; rows?: number }) => (
  <div role="status">
    <span class="visually-hidden">{label}</span>
    {Array.from({ length: rows }, (_, index) => (
      <span key={index} class="skeleton" />
    ))}
  </div>
)
