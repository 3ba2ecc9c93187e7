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
    /// `elif` arms in one file.
    pub elif_count: usize,
    /// Texts that the includes of one prompt put together, each counted wherever it stands.
    pub includes_count: usize,
    /// Partials inside partials.
    pub include_depth: usize,
    /// Constructs that a render in this process may run.
    pub fast_lane_steps: u64,
    /// Bytes that a render in this process may go over, all constructs together.
    pub fast_lane_work_bytes: u64,
    /// Arguments, all together, with which every prompt must render inside the limits to be published.
    pub check_arguments_bytes: usize,
}

/// Most `elif` arms that may be allowed: the engine's parser recurses on each (measured in Tera 2.4).
pub const MOST_ELIF: usize = 256;
/// Deepest includes that may be allowed: the engine recurses on each.
pub const MOST_INCLUDE_DEPTH: usize = 40;

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
            elif_count: MOST_ELIF,
            includes_count: 1024,
            include_depth: MOST_INCLUDE_DEPTH,
            fast_lane_steps: 16_384,
            fast_lane_work_bytes: 4 * 1024 * 1024,
            check_arguments_bytes: 64 * 1024,
        }
    }
}
