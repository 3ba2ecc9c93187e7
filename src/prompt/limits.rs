//! Sizes that bound everything a library can ask of the server.

/// Every limit of the format and of a render; units are in the names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// A prompt or partial file.
    pub prompt_file_bytes: usize,
    /// The front matter of a prompt.
    pub front_matter_bytes: usize,
    /// A prompt with everything it includes.
    pub closure_bytes: usize,
    /// Files in a closure.
    pub closure_files: usize,
    /// A resource file.
    pub resource_file_bytes: usize,
    /// A values file.
    pub values_file_bytes: usize,
    /// All argument values of one request together.
    pub arguments_bytes: usize,
    /// The rendered text of one prompt, embedded resources not counted.
    pub output_bytes: usize,
    /// Declared arguments of a prompt.
    pub arguments_count: usize,
    /// Examples of a prompt.
    pub examples_count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            prompt_file_bytes: 64 * 1024,
            front_matter_bytes: 16 * 1024,
            closure_bytes: 256 * 1024,
            closure_files: 32,
            resource_file_bytes: 1024 * 1024,
            values_file_bytes: 16 * 1024 * 1024,
            arguments_bytes: 1024 * 1024,
            output_bytes: 1024 * 1024,
            arguments_count: 32,
            examples_count: 64,
        }
    }
}
